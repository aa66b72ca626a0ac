"""Positions as pictures: vectors by place, how alike places are, and how far trained vectors moved.

Places that training never reached stand beyond a dashed line, along a hatched strip; a legend says so.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from attnlab.analysis.positions import MovedResult, Slot, SlotResult, StackResult
from attnlab.figures.style import BLUE, GREY, MAP, ORANGE, new_figure, styled

_PANEL = 3.3  # inches

ALIKE = {
    "add": "cosine of two places",
    "turn": "cosine of two places",
    "bias": "weight by bias alone, mean of heads",
}
UNKNOWN: dict[str, Any] = {"facecolor": "white", "edgecolor": ORANGE, "hatch": "////", "linewidth": 0}
VECTORS = {"add": "added vector", "turn": "rotated unit vector", "bias": "bias of the scores"}


@styled()
def draw_positions(data: StackResult) -> Figure:
    """A row for each slot: vectors, and how alike places are; then a row for each trained table."""
    slots, moved = data.slots, data.moved
    rows = len(slots) + len(moved)
    figure = new_figure(2 * _PANEL + 1.2, (_PANEL + 0.2) * rows)
    figure.suptitle(f"{data.stack}: {data.positions}", fontsize=10)
    grid = figure.add_gridspec(rows, 2)
    for place, slot in enumerate(slots):
        _draw_vectors(figure, figure.add_subplot(grid[place, 0]), slot)
        draw_alike(figure, figure.add_subplot(grid[place, 1]), slot.slot, slot.alike, slot.known)
    for place, table in enumerate(moved, len(slots)):
        _draw_moved(figure.add_subplot(grid[place, :]), table)
    explain_strips(figure, [slot.known_rows for slot in slots])
    return figure


def explain_strips(figure: Figure, known: list[list[bool]]) -> None:
    """What the hatched strips mean, if there are any."""
    figure.set_layout_engine("constrained", w_pad=0.12)
    if not all(map(all, known)):
        strip = Patch(**UNKNOWN, label="never reached in training")
        figure.legend(handles=[strip], loc="outside lower center")


def _draw_vectors(figure: Figure, axes: Axes, slot: SlotResult) -> None:
    values = np.asarray(slot.vectors)
    limit = float(abs(values).max()) or 1.0
    low = -limit if values.min() < 0 else 0.0
    bias = slot.slot == "bias"
    high = 0.0 if bias and values.max() <= 0 else limit
    mesh = axes.imshow(values, aspect="auto", cmap=MAP, vmin=low, vmax=high, interpolation="nearest")
    axes.set_title(VECTORS[slot.slot], pad=12)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="dimension", ylabel="token")
    if bias:
        axes.set(xlabel="head", ylabel="key's place minus query's")
        middle = len(slot.rows) // 2
        axes.set_yticks([0, middle, len(slot.rows) - 1], [str(slot.rows[i]) for i in (0, middle, -1)])
        axes.set_xticks(range(values.shape[1]))
    _mark(axes, slot.known_rows, across=False)
    figure.colorbar(mesh, ax=axes, shrink=0.8)


def draw_alike(figure: Figure, axes: Axes, slot: Slot, alike: list[list[float]], known: list[bool]) -> None:
    values = np.asarray(alike)
    low = 0.0 if slot == "bias" or values.min() >= 0 else -1.0
    high = float(values.max()) if slot == "bias" else 1.0
    mesh = axes.imshow(values, cmap=MAP, vmin=low, vmax=high, interpolation="nearest")
    axes.set_title(ALIKE[slot], pad=12)
    axes.set(xlabel="token", ylabel="token")
    _mark(axes, known, across=False)
    _mark(axes, known, across=True)
    figure.colorbar(mesh, ax=axes, shrink=0.6)


def _mark(axes: Axes, known: list[bool], *, across: bool) -> None:
    """A dashed line wherever known places end, and a hatched strip along the unknown ones."""
    line, strip = (axes.axvline, axes.axvspan) if across else (axes.axhline, axes.axhspan)
    for place, each in enumerate(known):
        if place and each != known[place - 1]:
            line(place - 0.5, color=ORANGE, linestyle="--", linewidth=1.2)
        if not each:
            strip(place - 0.5, place + 0.5, 1.0, 1.03, clip_on=False, **UNKNOWN)


def _draw_moved(axes: Axes, table: MovedResult) -> None:
    rows = range(len(table.distance))
    for known, colour, hatch in ((True, BLUE, None), (False, "white", "////")):
        chosen = [row for row in rows if table.known[row] is known]
        name = "reached in training" if known else "never reached"
        if chosen:
            heights = [table.distance[row] for row in chosen]
            axes.bar(chosen, heights, edgecolor=BLUE, color=colour, hatch=hatch, label=f"moved, {name}")
    name = "of it sideways, which weight decay does not do"
    axes.bar(rows, table.sideways, width=0.35, color=ORANGE, label=name)
    axes.step(rows, table.start_norm, where="mid", color=GREY, linewidth=1, label="length at the start")
    axes.set_title(f"how far the vectors of {table.table} moved in training")
    axes.set(xlabel="row", ylabel="distance")
    axes.legend(fontsize=7)
