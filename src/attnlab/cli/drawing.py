"""Where commands draw."""

from pathlib import Path

from attnlab.runs import Run


def figures_folder(run: Run, out: str) -> Path | None:
    """The folder that is asked for, or one in the run; none for a shipped run."""
    if out:
        return Path(out)
    return None if run.shipped else run.file("figures")
