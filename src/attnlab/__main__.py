"""``python -m attnlab``: the same as the command ``attnlab``."""

from attnlab.cli.main import main

if __name__ == "__main__":
    main()
