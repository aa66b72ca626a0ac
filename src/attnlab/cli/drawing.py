"""How commands end that print what they found and draw it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from attnlab.cli.output import print_json, say
from attnlab.results import Result
from attnlab.runs import Run, why_kept_stays
from attnlab.spec import to_json

R = TypeVar("R", bound=Result | dict[str, Any])


def figures_folder(run: Run, out: str) -> Path | None:
    """The folder that is asked for, or one in the run; none for a shipped run."""
    if out:
        return Path(out)
    return None if run.shipped else run.file("figures")


def drawing_folder(run: Run, out: str) -> Path:
    """The same for commands that do nothing but draw: for a shipped run figures where one is."""
    return figures_folder(run, out) or Path("figures")


def figure_name(name: str, run: Run, kept: str, found: Result | dict[str, Any], *sizes: str) -> str:
    """``name``, or one of its own where a fuller result stays in the run; that is said too."""
    why = why_kept_stays(run, kept, found, *sizes)
    if why is None:
        return name
    say(why)
    return "-".join([name, *(f"{to_json(found)[size]}-{size}" for size in sizes)])


def show_and_draw(
    found: R,
    run: Run,
    *,
    json: bool,
    show: Callable[[R], None],
    out: str,
    write: Callable[[R, Path], None],
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
