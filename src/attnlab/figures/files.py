"""A figure as files: SVG and PNG, with its numbers as JSON beside them.

These are a result, another dataclass, or plain JSON values.
"""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from attnlab.figures.style import to_png, to_svg
from attnlab.spec import to_json
from attnlab.storage import make_folder, write_bytes, write_json, write_text


def write_figure(folder: Path, name: str, data: Any, drawn: Figure) -> list[Path]:
    """Write ``name``.svg, ``name``.png and ``name``.json into ``folder``; make it if need be."""
    make_folder(folder)
    svg, png, numbers = (folder / f"{name}.{ending}" for ending in ("svg", "png", "json"))
    write_text(svg, to_svg(drawn))
    write_bytes(png, to_png(drawn))
    write_json(numbers, to_json(data))
    return [svg, png, numbers]


def write_picture(path: Path, data: Any, drawn: Figure) -> list[Path]:
    """Write the one file that is named, SVG or PNG by its ending, and its numbers as JSON beside it."""
    make_folder(path.parent)
    if path.suffix == ".svg":
        write_text(path, to_svg(drawn))
    else:
        write_bytes(path, to_png(drawn))
    numbers = path.with_suffix(".json")
    write_json(numbers, to_json(data))
    return [path, numbers]
