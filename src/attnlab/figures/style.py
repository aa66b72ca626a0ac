"""One look for all figures, the parts that several are made of, and turning them into files.

Colours are Okabe and Ito's (2008), which the colour-blind can tell apart; maps use cividis (Nunez,
Anderton and Renslow, 2018) on a scale from 0 to 1, so that uniform attention looks uniform.
"""

import io
from collections.abc import Sequence
from contextlib import _GeneratorContextManager
from math import nan
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from attnlab.spec import to_json
from attnlab.storage import make_folder, write_bytes, write_json, write_text

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#767676"
MARKED = (
    (BLUE, "o"), (ORANGE, "s"), ("#009E73", "^"),
    ("#CC79A7", "D"), ("#56B4E9", "v"), (GREY, "P"),
)  # fmt: skip
"""Colours with markers, which tell curves apart without colour."""
MAP = "cividis"
SIGNED = "PuOr_r"
"""Of values to both sides of 0, which is white."""

STYLE: dict[str, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.size": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "attnlab",
}


def styled() -> _GeneratorContextManager[None]:
    """The common look, for as long as the context is open, or for a function that it decorates."""
    return mpl.rc_context(STYLE)  # type: ignore[arg-type]  # the stub wants a literal for each key


@styled()
def new_figure(width: float, height: float) -> Figure:
    """An empty figure of the given size in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def panels(figure: Figure | SubFigure, count: int, across: int, **options: Any) -> list[Axes]:
    """Axes for ``count`` panels in rows of ``across``; places that are left over stay empty."""
    grid = figure.subplots(-(-count // across), across, squeeze=False, **options)
    for axes in grid.flat[count:]:
        axes.axis("off")
    return list(grid.flat[:count])


def heat_map(
    axes: Axes,
    values: Sequence[Sequence[float | None]],
    limits: tuple[float, float] = (0, 1),
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    words: Sequence[Sequence[str]] = (),
    size: float = 7,
    colours: str = MAP,
    left: float = 0.0,
    edge: str = "white",
    line: float = 0.4,
) -> Any:
    """A table of colours, the first row on top, with ``words`` in its cells and names at its sides.

    Words are white where the map is dark: at the low end, or at both ends of ``SIGNED``. The first column
    begins at ``left``; a cell without a value has no colour.
    """
    low, high = limits
    shown = [[nan if value is None else value for value in row] for row in values]
    across, down = range(len(shown[0]) + 1), range(len(shown) + 1)
    mesh = axes.pcolormesh(
        [left + x for x in across],
        down,
        shown,
        vmin=low,
        vmax=high,
        cmap=colours,
        edgecolor=edge,
        linewidth=line,
    )
    for y, line_of_words in enumerate(words):
        for x, word in enumerate(line_of_words):
            if not word:
                continue
            share = (shown[y][x] - low) / (high - low)
            dark = abs(2 * share - 1) > 0.7 if colours == SIGNED else share < 0.6
            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size}
            axes.text(left + x + 0.5, y + 0.5, word, color="white" if dark else "black", **look)
    if columns is not None:
        axes.set_xticks([left + x + 0.5 for x in across[:-1]], columns)
    if rows is not None:
        axes.set_yticks([y + 0.5 for y in down[:-1]], rows)
    axes.set_ylim(len(shown), 0)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """A row for each name, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def draw_estimates(
    axes: Axes,
    y: Sequence[float],
    values: Sequence[float],
    ends: Sequence[Sequence[float]],
    look: tuple[str, str],
    label: str | None = None,
) -> None:
    """A mark for each value with its interval, from left to right; ``look`` is a colour and a form."""
    colour, form = look
    low, high = zip(*ends, strict=True)
    axes.hlines(y, low, high, color=colour, linewidth=1.6, alpha=0.7)
    axes.plot(values, y, form, color=colour, markersize=4.5, label=label, zorder=3)


@styled()
def to_svg(figure: Figure) -> str:
    """The figure as SVG; the same figure gives the same bytes."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


@styled()
def to_png(figure: Figure) -> bytes:
    """The figure as PNG, at 144 dots an inch."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, metadata={"Software": None})
    return buffer.getvalue()


def show_image(axes: Axes, image: Any, *, most: float | None = None) -> None:
    """A picture (Y, X) as ink on paper, or in its colours (3, Y, X); ``most`` is the value of full ink."""
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        axes.imshow(pixels, cmap="gray_r", vmin=None if most is None else 0, vmax=most)
        return
    low, high = (pixels.min(), pixels.max()) if most is None else (0, most)
    axes.imshow((pixels.transpose(1, 2, 0) - low) / max(high - low, 1e-9))


def in_grey(image: Any) -> Any:
    """A picture (Y, X), of one in colour the mean over its channels."""
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 2 else pixels.mean(axis=0)


def write_figure(folder: Path, name: str, data: Any, drawn: Figure) -> list[Path]:
    """Write ``name``.svg, ``name``.png and, with its numbers, ``name``.json into ``folder``."""
    svg, png, numbers = (folder / f"{name}.{ending}" for ending in ("svg", "png", "json"))
    for path in (svg, png):
        write_picture(path, data, drawn)
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
