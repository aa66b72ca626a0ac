"""One look for all figures, and turning them into files.

Colours are Okabe and Ito's (2008), which the colour-blind can tell apart; maps use cividis (Nunez,
Anderton and Renslow, 2018) on a scale from 0 to 1, so that uniform attention looks uniform.
"""

import io
import re
from contextlib import _GeneratorContextManager
from pathlib import Path
from typing import Any, final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogFormatterSciNotation, NullFormatter

from attnlab.specs import to_json
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

SCREEN_DPI = 80
"""How large a figure is on the screen, in pixels an inch."""

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
    "text.parse_math": False,  # names are no formulas
}


def styled() -> _GeneratorContextManager[None]:
    """The common look, for as long as the context is open, or for a function that it decorates."""
    return mpl.rc_context(STYLE)  # type: ignore[arg-type]  # the stub wants a literal for each key


@final
class ShownFigure(Figure):
    """A figure that notebooks show as the result of a cell, whether pyplot was imported or not."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture, and its size on the screen in pixels."""
        width, height = (round(inches * SCREEN_DPI) for inches in self.get_size_inches())
        return to_png(self), {"width": width, "height": height}


@styled()
def new_figure(width: float, height: float) -> Figure:
    """An empty figure of the given size in inches."""
    return ShownFigure(figsize=(width, height), layout="constrained")


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of a single panel."""
    figure = new_figure(width, height)
    return figure, figure.subplots()


@styled()
def to_svg(figure: Figure) -> str:
    """The figure as SVG; the same figure gives the same bytes."""
    _write_plainly(figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


@styled()
def to_png(figure: Figure) -> bytes:
    """The figure as PNG, at 144 dots an inch."""
    _write_plainly(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, metadata={"Software": None})
    return buffer.getvalue()


@final
class PlainPowers(LogFormatterSciNotation):
    """Ticks of a logarithmic axis as plain text, 10⁻³, where matplotlib writes formulas."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return plain_power(super().__call__(x, pos))


def plain_power(formula: str) -> str:
    """``$\\mathdefault{2\\times10^{-3}}$`` as 2×10⁻³."""
    inner = re.sub(r"^\$\\mathdefault\{(.*)\}\$$", r"\1", formula).replace(r"\times", "×")
    return re.sub(r"\^\{(.*?)\}", lambda found: found[1].translate(_RAISED), inner)


_RAISED = str.maketrans("-−0123456789", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _write_plainly(figure: Figure) -> None:
    """Take no text for a formula: one that is none, such as the name ``$x^$``, could not be drawn."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    for axis in (each for axes in figure.axes for each in (axes.xaxis, axes.yaxis)):
        shown = axis.get_major_formatter()
        if isinstance(shown, LogFormatterSciNotation) and not isinstance(shown, PlainPowers):
            scale: Any = axis.get_transform()
            axis.set_major_formatter(PlainPowers(base=scale.base))
            axis.set_minor_formatter(NullFormatter())


def write_figure(folder: Path, name: str, data: Any, drawn: Figure) -> list[Path]:
    """Write ``name``.svg, ``name``.png and, with its numbers, ``name``.json into ``folder``."""
    *pictures, numbers = (folder / f"{name}.{ending}" for ending in ("svg", "png", "json"))
    for path in pictures:
        write_picture(path, data, drawn)
    return [*pictures, numbers]


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
