"""Where commands write and what files there are called, and how commands end that draw what they found."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from attnlab.data.choices import ENDINGS
from attnlab.display import say
from attnlab.errors import StorageError
from attnlab.results import Result
from attnlab.runs import RunFolder, why_kept_stays
from attnlab.specs import to_json
from attnlab.storage import make_folder, safe_name, write_json, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D = TypeVar("D")
_NAMED = 12  # files that are named each; of more there is only the folder


def file_name(*words: str) -> str:
    """A name that any disk takes; of a picture without its ending."""
    ends = (Path(word).suffix for word in words)
    plain = [
        w.removesuffix(end) if end.lower() in ENDINGS else w for w, end in zip(words, ends, strict=True)
    ]
    return safe_name("-".join(plain))


def figures_folder(run: RunFolder, out: str) -> Path | None:
    """The folder that is asked for, or one in the run; none for a shipped run."""
    if out:
        return Path(out)
    return None if run.shipped else run.folder("figures")


def drawing_folder(run: RunFolder, out: str) -> Path:
    """The same for commands that do nothing but draw: for a shipped run figures where one is."""
    return figures_folder(run, out) or Path("figures")


def figure_name(name: str, run: RunFolder, kept: str, found: Result, *sizes: str) -> str:
    """``name``, or one of its own where a fuller result stays in the run; that is said too."""
    why = why_kept_stays(run, kept, found, *sizes)
    if why is None:
        return name
    say(why)
    return "-".join([name, *(f"{to_json(found)[size]}-{size}" for size in sizes)])


def save_figures(found: Result, run: RunFolder, out: str, *, name: str = "", prefix: str = "") -> None:
    """Draw the figures of ``found`` where they belong, and say where they are."""
    folder = figures_folder(run, out)
    try:
        if folder is not None and (files := found.save_figures(folder, name=name, prefix=prefix)):
            say_written(files)
    except StorageError as error:
        if out:
            raise
        say(f"no figures: {error}")  # nobody asked for them there


def write_main(
    found: Result, run: RunFolder, out: str, *, name: str, page: Callable[[], str] | None = None
) -> list[Path]:
    """The main figure of ``found``, and its page if it has one, as ``write_out`` writes them."""
    drawing = next(iter(found.figures().values()))
    return write_out(run, out, name, drawing.data, drawing.draw, page)


def say_written(paths: list[Path]) -> None:
    several = f"{len(paths)} files to {paths[0].parent}" if len(paths) > _NAMED else ""
    say(f"wrote {several or ', '.join(map(str, paths))}")


def write_out(
    run: RunFolder,
    out: str,
    name: str,
    data: D,
    draw: "Callable[[D], Figure]",
    page: Callable[[], str] | None = None,
) -> list[Path]:
    """The file that is asked for, with its numbers next to it, or all kinds in a folder by ``name``."""
    from attnlab.figures.style import write_figure, write_picture

    path = Path(out)
    ending = "" if path.is_dir() else path.suffix
    if ending in (".svg", ".png"):
        return write_picture(path, data, draw(data))
    if page is not None and ending == ".html":
        make_folder(path.parent)
        write_text(path, page())
        write_json(path.with_suffix(".json"), to_json(data))
        return [path, path.with_suffix(".json")]
    folder = drawing_folder(run, out)
    files = write_figure(folder, name, data, draw(data))
    if page is None:
        return files
    write_text(folder / f"{name}.html", page())
    return [*files, folder / f"{name}.html"]
