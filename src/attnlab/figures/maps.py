"""Maps of attention over images: colour is the weight of a patch, the line is the outline of the ink.

The fixed scale goes from 0 to four times what uniform attention gives, so that an even map is one even
colour, the same in every figure. Where a weight is higher, all maps of the figure have a scale up to the
highest, and beyond 8 colours follow the square root of weights. On request each map has a scale of its own,
from 0 to its highest weight.
"""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from attnlab.analysis.choices import MapScale
from attnlab.analysis.maps import PatchMap
from attnlab.analysis.samples import Sample
from attnlab.figures.parts import in_grey, show_image
from attnlab.figures.style import MAP, ORANGE, new_figure, styled
from attnlab.results import Result

FIXED = 4.0
"""Highest multiple of uniform attention on the fixed scale."""
ROOT = 8.0
"""Scales beyond this follow the square root of weights."""
_PANEL = 1.62  # inches along a map
_LINE = 0.145  # inches of a line of words above it
_LONG = 22  # characters of a line above an image
_ACROSS = 6  # maps side by side at most
_LINED = 200  # patches up to which lines part them
_INK = 110  # grey value of a digit's line
_ABOUT = {
    "received": "what each patch receives: the mean over all queries",
    "sent": "where the marked patch looks",
    "cls": "where the token in front looks",
    "digits": "where cross attention looks while each digit is said",
    "rollout": "rollout: what each patch gives, followed through all layers",
}


@dataclass(frozen=True)
class MappedImage:
    """An image, what it was read as, and rows of its maps."""

    input: str
    answer: str
    truth: str | None
    cells: int
    pixels: list[Any]
    rows: list[list[PatchMap]]


@dataclass(frozen=True, kw_only=True)
class MapsFigure(Result):
    """Images with their maps; weights are multiples of uniform attention."""

    view: str
    scale: MapScale
    limit: float
    images: list[MappedImage]


def maps_data(
    view: str, found: Sequence[tuple[Sample, list[list[PatchMap]]]], *, scale: MapScale = "fixed"
) -> MapsFigure:
    images = [
        MappedImage(each.name, each.output, each.shown, len(each.answer), each.pixels.tolist(), rows)
        for each, rows in found
    ]
    return MapsFigure(view=view, scale=scale, limit=scale_end(images), images=images)


def scale_end(images: Sequence[MappedImage]) -> float:
    """Where the scale of all maps ends, in multiples of uniform attention: at the highest weight, or 4."""
    return max(FIXED, *(each.peak for image in images for row in image.rows for each in row))


def _norm(limit: float) -> Normalize:
    """From weights to colours: linear, or by the square root where else small weights would look alike."""
    return PowerNorm(0.5, 0, limit) if limit > ROOT else Normalize(0, limit)


@styled()
def draw_maps(data: MapsFigure) -> Figure:
    """For each image a block: the image itself at the left, its maps beside it."""
    blocks = [(image, _lines(image.rows)) for image in data.images]
    columns = 1 + max(len(row) for _, rows in blocks for row in rows)
    lines = sum(len(rows) for _, rows in blocks)
    high, wide = in_grey(data.images[0].pixels).shape
    own = data.scale == "map"
    titles = [_title(panel) for _, rows in blocks for row in rows for panel in row]
    words = max(len(title.splitlines()) for title in [*titles, *map(_image_title, data.images)])
    tall = (_PANEL * (high / wide) + 0.1 + _LINE * words) * lines + 0.3
    figure = new_figure(max(3.6, (_PANEL + (0.55 if own else 0)) * columns + 1.0), tall)
    figure.suptitle(_ABOUT[data.view], fontsize=9, x=0.01, ha="left")
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    free = iter(grid)
    for image, rows in blocks:
        for number, (row, (first, *others)) in enumerate(zip(rows, free, strict=False)):
            if number == 0:
                show_image(first, image.pixels, most=255)
                first.set_title(_image_title(image), fontsize=8)
            for axes, panel in zip(others, row, strict=False):
                norm = Normalize(0, panel.peak) if own else _norm(data.limit)
                mesh = _draw_map(axes, panel, in_grey(image.pixels), norm)
                if own:
                    figure.colorbar(mesh, ax=axes, shrink=0.75, pad=0.02).ax.tick_params(labelsize=7)
    if own:
        figure.supxlabel("weight, 1 = uniform attention; each map has its own scale", fontsize=8)
    else:
        shrink = 1.0 if lines == 1 else max(0.3, 2.0 / lines)
        bar = figure.colorbar(mesh, ax=grid, shrink=shrink, aspect=14)
        bar.set_label("weight (1 = uniform)")
        ticks = [0.0, 1, 4, data.limit] if data.limit > ROOT else [0.0, 1, 2, 3, data.limit]
        bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    return figure


def _lines(rows: list[list[PatchMap]]) -> list[list[PatchMap]]:
    """Rows of one map each are put side by side; rows that are too long become as few lines as can be, each
    but the last of the same length."""
    if all(len(row) == 1 for row in rows):
        rows = [[row[0] for row in rows]]
    across = [math.ceil(len(row) / math.ceil(len(row) / _ACROSS)) for row in rows]
    return [row[at : at + n] for row, n in zip(rows, across, strict=True) for at in range(0, len(row), n)]


def _image_title(image: MappedImage) -> str:
    """What it was read as; long names and the digits of a large grid go on in the next line."""
    wrong = image.truth is not None and image.truth != image.answer
    told = textwrap.wrap(f"read as {image.answer}", _LONG)
    told += textwrap.wrap(f"wrong, it is {image.truth}", _LONG) if wrong else [""]
    return "\n".join([*textwrap.wrap(image.input, _LONG), *told])


def _draw_map(axes: Axes, panel: PatchMap, pixels: Any, norm: Normalize) -> QuadMesh:
    high, wide = pixels.shape
    rows, columns = len(panel.weights), len(panel.weights[0])
    edges = [wide * place / columns for place in range(columns + 1)]
    sides = [high * place / rows for place in range(rows + 1)]
    lines = {"edgecolor": "white", "linewidth": 0.3} if rows * columns <= _LINED else {"edgecolor": "face"}
    mesh = axes.pcolormesh(edges, sides, panel.weights, norm=norm, cmap=MAP, **lines)
    if pixels.max() > _INK:  # a line around the ink, so that colours of the map stay what the bar says
        ys, xs = ([place + 0.5 for place in range(side)] for side in pixels.shape)
        line = axes.contour(xs, ys, pixels, levels=[_INK], colors="white", linewidths=0.9)
        line.set_path_effects([withStroke(linewidth=2.0, foreground="black")])
    if panel.query is not None:
        row, column = panel.query
        corner, size = (edges[column], sides[row]), (wide / columns, high / rows)
        axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=ORANGE, linewidth=2, zorder=5))
    axes.set(xlim=(0, wide), ylim=(high, 0), aspect="equal")
    axes.set_title(_title(panel), fontsize=7.5, linespacing=1.15)
    return mesh


def _title(panel: PatchMap) -> str:
    lines = [panel.map] if panel.of in ("received", "cls") else [panel.map, panel.of]
    even = panel.evenness is None
    lines.append(
        "one patch: no entropy" if even else f"entropy {panel.entropy:.2f} of {panel.most_entropy:.2f}"
    )
    if panel.entropy_of_rows is not None:
        lines.append(f"entropy of rows: {100 * panel.entropy_of_rows:.0f}%")  # of its maximum
    front = f", {100 * panel.front:.0f}% in front" if panel.front > 0 else ""
    return "\n".join([*lines, f"peak {panel.peak:.1f}{front}"])
