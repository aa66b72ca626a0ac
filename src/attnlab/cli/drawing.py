"""How commands end that print what they found and draw it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnlab.cli.output import print_json
from attnlab.runs import Run


def figures_folder(run: Run, out: str) -> Path | None:
    """The folder that is asked for, or one in the run; none for a shipped run."""
    if out:
        return Path(out)
    return None if run.shipped else run.file("figures")


def drawing_folder(run: Run, out: str) -> Path:
    """The same for commands that do nothing but draw: for a shipped run figures where one is."""
    return figures_folder(run, out) or Path("figures")


def show_and_draw(
    found: dict[str, Any],
    run: Run,
    *,
    json: bool,
    show: Callable[[dict[str, Any]], None],
    out: str,
    write: Callable[[dict[str, Any], Path], None],
) -> int:
    """Print JSON or tables, draw the figures where they belong, and end well."""
    if json:
        print_json(found)
    else:
        show(found)
    folder = figures_folder(run, out)
    if folder is not None:
        write(found, folder)
    return 0
