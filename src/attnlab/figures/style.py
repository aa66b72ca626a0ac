"""One look for all figures, and turning them into files.

Colours are Okabe and Ito's (2008), which the colour-blind can tell apart; maps use cividis (Nunez,
Anderton and Renslow, 2018) on a scale from 0 to 1, so that uniform attention looks uniform.
"""

import io
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#767676"
MARKED = (
    (BLUE, "o"), (ORANGE, "s"), ("#009E73", "^"),
    ("#CC79A7", "D"), ("#56B4E9", "v"), (GREY, "P"),
)  # fmt: skip
"""Colours with markers, which tell curves apart without colour."""
MAP = "cividis"

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


def styled() -> AbstractContextManager[None]:
    """The common look, for as long as the context is open."""
    return mpl.rc_context(STYLE)  # type: ignore[arg-type]  # the stub wants a literal for each key


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of the given size in inches."""
    with styled():
        return Figure(figsize=(width, height), layout="constrained")


def to_svg(figure: Figure) -> str:
    """The figure as SVG; the same figure gives the same bytes."""
    buffer = io.StringIO()
    with styled():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def to_png(figure: Figure) -> bytes:
    """The figure as PNG, at 144 dots an inch."""
    buffer = io.BytesIO()
    with styled():
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
