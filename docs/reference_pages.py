"""Reference pages made from the program itself: one for each command, one for each public name.

They are written at each build of the site and never committed, so they cannot be out of date.
"""

import contextlib
import inspect
import io
import os
from collections.abc import Iterable
from pathlib import Path

import attnlab
from attnlab.cli import main
from attnlab.storage import write_text

WIDTH = 96
"""Columns of a help text: what a page shows without scrolling."""

SUBCOMMANDS = {
    "train": [["train", "addition"], ["train", "digits"], ["train", "grids"], ["train", "sorting"]],
    "study": [["study", "list"], ["study", "run"], ["study", "show"]],
    "data": [["data", "status"], ["data", "fetch"]],
}
"""What follows a command's own help text."""

GUIDES = {
    "ablate": "explanation/ablation", "calibrate": "howto/pictures", "compare": "howto/report",
    "doctor": "howto/doctor",
    "ensemble": "howto/pictures", "explain": "explanation/attribution", "explore": "howto/explorer",
    "export": "howto/export", "gradcheck": "explanation/explicit", "handout": "howto/handout",
    "heads": "explanation/heads", "lengths": "howto/sorting", "maps": "explanation/maps",
    "patch": "explanation/patching", "patterns": "explanation/heads", "positions": "explanation/positions",
    "predict": "howto/pictures", "project": "explanation/projections", "prune": "explanation/pruning",
    "report": "howto/report", "show": "howto/pictures", "study": "howto/studies", "sweep": "howto/sweeps",
    "timelapse": "explanation/timelapse", "train": "howto/own-task",
    "check": "course/index",
}  # fmt: skip
"""The page that tells more of a command."""


def write_reference(folder: Path) -> None:
    """Pages for all commands and all public names; those of names that are gone are removed."""
    _write_pages(folder / "commands", {name: command_page(name) for name in main.COMMANDS})
    _write_pages(folder / "names", {name: name_page(name) for name in attnlab.__all__})


def _write_pages(folder: Path, pages: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in set(folder.glob("*.md")) - {folder / f"{name}.md" for name in pages}:
        old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if (
            not path.exists() or path.read_text(encoding="utf-8") != text
        ):  # an unchanged page is not read anew
            write_text(path, text)


def command_page(name: str) -> str:
    """What ``attnlab NAME --help`` prints, and where to read on."""
    blocks = [[name], *SUBCOMMANDS.get(name, [])]
    texts = "\n\n".join(
        f"```text\n$ attnlab {' '.join(words)} --help\n{help_of(words)}\n```" for words in blocks
    )
    more = f"\n\nRead on: {{doc}}`/{GUIDES[name]}`." if name in GUIDES else ""
    return f"# attnlab {name}\n\n{_sentence(main.COMMANDS[name])}{more}\n\n{texts}\n"


def help_of(words: Iterable[str]) -> str:
    """The help text of a command, as wide as a page."""
    said = io.StringIO()
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            main.run([*words, "--help"])
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
    return said.getvalue().strip()


def name_page(name: str) -> str:
    """The signature and docstring of ``attnlab.NAME``; a class comes with its methods."""
    thing = getattr(attnlab, name)
    if not inspect.isclass(thing):
        directive = f".. autofunction:: attnlab.{name}"
    elif issubclass(thing, Exception):
        directive = f".. autoexception:: attnlab.{name}"
    else:
        directive = f".. autoclass:: attnlab.{name}\n   :members:"
    return f"# attnlab.{name}\n\n```{{eval-rst}}\n{directive}\n```\n"


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
