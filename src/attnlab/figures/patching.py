"""What patched values restore, as maps with the numbers in them."""

import re
from dataclasses import dataclass
from itertools import zip_longest

from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from attnlab.analysis.patch.contrasts import PLAIN, Contrast, Words
from attnlab.analysis.patch.grids import ATTENTION_OUT, HEADS, STREAM, MeasuredGrid
from attnlab.figures.parts import heat_map
from attnlab.figures.style import GREY, new_figure, styled
from attnlab.results import Interval
from attnlab.specs.codec import later

_ROW, _CELL, _LETTER, _TITLE = 0.23, 0.46, 0.068, 0.75  # inches
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Panel:
    """One map, in percent."""

    title: str
    rows: list[str]
    columns: list[str]
    percent: list[list[float]]
    interval: list[list[Interval]] | None = later(None)


@dataclass(frozen=True)
class Panels:
    """Rows of maps on one scale."""

    title: str
    label: str
    panels: list[list[Panel]]


def stream_data(contrast: Contrast, words: Words = PLAIN) -> Panels:
    """Residual stream and attention outputs by position, in percent."""
    titles = {STREAM: "residual stream after", ATTENTION_OUT: "output of attention"}
    panels = [_panels(contrast.denoising, quantity, title) for quantity, title in titles.items()]
    return _data(contrast, words, _given(words), panels)


def head_grids_data(contrast: Contrast, words: Words = PLAIN) -> Panels:
    """Every head at all positions, by what is put in, in both directions, in percent."""
    directions = {"put in": contrast.denoising, "taken out": contrast.noising}
    panels = [
        panel
        for title, grids in directions.items()
        for panel in _panels(grids, HEADS, f"{words.moved} {title}".strip())
    ]
    return _data(contrast, words, "one head at all positions", [panels])


def positions_data(contrast: Contrast, words: Words = PLAIN, quantity: str = "z") -> Panels:
    """One quantity of every head by position, in percent."""
    return _data(contrast, words, _given(words), [_panels(contrast.denoising, quantity, quantity)])


def _given(words: Words) -> str:
    base, donor = words.called
    return f"{base} is given values of {donor}"


def _data(contrast: Contrast, words: Words, what: str, panels: list[list[Panel]]) -> Panels:
    title = words.title(contrast.name)
    return Panels(
        f"{title[0].upper()}{title[1:]}, {contrast.pairs} pairs: {what}",
        "% of the logit difference restored",
        panels,
    )


def _panels(grids: list[MeasuredGrid], quantity: str, title: str) -> list[Panel]:
    return [
        Panel(
            title,
            grid.rows,
            grid.columns,
            [[100 * share for share in row] for row in grid.share],
            [[(100 * low, 100 * high) for low, high in row] for row in grid.interval],
        )
        for grid in grids
        if grid.quantity == quantity
    ]


@styled()
def draw_grids(data: Panels) -> Figure:
    """A map for each panel: a row is a layer or a head, a column a position or a quantity."""
    panels = [row for row in data.panels if row]
    stacks = [[panel for panel in stack if panel] for stack in zip_longest(*panels)]
    wide = [max(len(panel.columns) for panel in stack) for stack in stacks]
    tall = [max(len(panel.rows) for panel in row) for row in panels]
    names = [max(_LETTER * len(name) for panel in stack for name in panel.rows) for stack in stacks]
    figure = new_figure(_CELL * sum(wide) + sum(names) + 1.2, _ROW * sum(tall) + _TITLE * len(tall) + 0.3)
    grid = figure.subplots(len(tall), len(wide), squeeze=False, width_ratios=wide, height_ratios=tall)
    for line, row, height in zip(grid, panels, tall, strict=True):
        for axes, panel in zip_longest(line, row):
            if panel:
                mesh = _draw_panel(axes, panel, height)
            else:
                axes.axis("off")
    figure.colorbar(mesh, ax=grid, shrink=0.7, label=data.label, extend="both", pad=0.02)
    figure.suptitle(_raised(data.title), x=0.01, ha="left", fontsize=10)
    return figure


def _draw_panel(axes: Axes, panel: Panel, height: int) -> QuadMesh:
    columns = [_raised(name).replace(" ", "\n") for name in panel.columns]
    mesh = heat_map(axes, panel.percent, (0, 100), rows=panel.rows, columns=columns, words="z.0f")
    axes.set_ylim(height, 0)
    axes.xaxis.tick_top()
    axes.tick_params(labelsize=7.5)
    axes.set_title(panel.title, fontsize=8.5, color=GREY)
    return mesh


def _raised(text: str) -> str:
    """``10^2`` with a raised 2."""
    return re.sub(r"\^(\d*)", lambda found: found[1].translate(_RAISED), text)
