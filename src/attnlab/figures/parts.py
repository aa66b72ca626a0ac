"""What several figures are made of: panels, maps with numbers in them, named rows, intervals, pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure, SubFigure

from attnlab.figures.style import MAP, SIGNED


def panels(figure: Figure | SubFigure, count: int, across: int, **options: Any) -> list[Axes]:
    """Axes for ``count`` panels in rows of ``across``; places that are left over stay empty."""
    grid = figure.subplots(max(1, -(-count // across)), across, squeeze=False, **options)
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
    words: str | Sequence[Sequence[str]] = "",
    size: float = 7,
    colours: str = MAP,
    left: float = 0.0,
    edge: str = "white",
    line: float = 0.4,
) -> QuadMesh:
    """A table of colours, the first row on top, with ``words`` in its cells, or values in that format, and
    names at its sides.

    Words are white where the map is dark: at the low end, or at both ends of ``SIGNED``. The first column
    begins at ``left``; a cell without a value has no colour.
    """
    low, high = limits
    shown = np.array(values, dtype=float)  # None is nan
    down, across = (np.arange(cells + 1) for cells in shown.shape)
    mesh = axes.pcolormesh(left + across, down, shown, vmin=low, vmax=high, cmap=colours, ec=edge, lw=line)
    for (y, x), value in np.ndenumerate(shown) if words else ():
        word = format(value, words) if isinstance(words, str) else words[y][x]
        share = (value - low) / (high - low)
        dark = abs(2 * share - 1) > 0.7 if colours == SIGNED else share < 0.6
        look: dict[str, Any] = {"ha": "center", "va": "center", "color": "white" if dark else "black"}
        if word and not np.isnan(value):
            axes.text(left + x + 0.5, y + 0.5, word, fontsize=size, **look)
    if columns is not None:
        axes.set_xticks(left + across[:-1] + 0.5, columns)
    if rows is not None:
        axes.set_yticks(down[:-1] + 0.5, rows)
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
    values: Sequence[float],
    ends: Sequence[Sequence[float]],
    look: tuple[str, str],
    label: str | None = None,
    offset: float = 0.0,
) -> None:
    """A mark for each value with its interval, a row each; ``look`` is a colour and a form."""
    colour, form = look
    y = [row + offset for row in range(len(values))]
    low, high = zip(*ends, strict=True)
    axes.hlines(y, low, high, color=colour, linewidth=1.6, alpha=0.7)
    axes.plot(values, y, form, color=colour, markersize=4.5, label=label, zorder=3)


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
