"""Heads and metrics as a map: a row is a head, a column a metric, above each kind uniform attention."""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.heads import HeadsResult, MeasuredHead, Metric
from attnlab.figures.style import MAP, new_figure, styled
from attnlab.results import Interval

_LEFT_OUT = "entropy_nats"  # all others go from 0 to 1
_ROW, _COLUMN = 0.23, 0.78  # inches


@dataclass(frozen=True)
class KindData:
    """A kind of attention: a row a head, a column a metric; None where it does not apply."""

    kind: str
    heads: list[str]
    uniform: list[float | None]
    values: list[list[float | None]]
    intervals: list[list[Interval | None]]


@dataclass(frozen=True)
class HeadsData:
    """Values with their intervals, by kind of attention."""

    metrics: list[str]
    examples: int
    kinds: list[KindData]


def heads_data(found: HeadsResult) -> HeadsData:
    """All metrics that go from 0 to 1."""
    names = [name for name in found.metrics if name != _LEFT_OUT]
    return HeadsData(
        names, found.examples, [_kind(kind, names, rows) for kind, rows in found.kinds.items()]
    )


def _kind(kind: str, names: list[str], rows: list[MeasuredHead]) -> KindData:
    cells: list[list[Metric | None]] = [[row.metrics.get(name) for name in names] for row in rows]

    def uniform(column: tuple[Metric | None, ...]) -> float | None:
        known = [cell.uniform for cell in column if cell is not None]
        return sum(known) / len(known) if known else None

    return KindData(
        kind=kind,
        heads=[row.head for row in rows],
        uniform=[uniform(column) for column in zip(*cells, strict=True)],
        values=[[None if cell is None else cell.value for cell in row] for row in cells],
        intervals=[[None if cell is None else cell.interval for cell in row] for row in cells],
    )


@styled()
def draw_heads(data: HeadsData) -> Figure:
    """A map for each kind of attention, with the numbers in it."""
    names, kinds = data.metrics, data.kinds
    tall = [len(kind.heads) + 1 for kind in kinds]
    figure = new_figure(2.3 + _COLUMN * len(names), 0.7 + _ROW * sum(tall) + 0.3 * len(tall))
    grid = figure.subplots(len(kinds), 1, squeeze=False, height_ratios=tall)[:, 0]
    for axes, kind in zip(grid, kinds, strict=True):
        mesh = _draw_kind(axes, kind, names)
    grid[0].xaxis.set_ticks_position("top")
    grid[0].set_xticks([i + 0.5 for i in range(len(names))], [name.replace("_", " ") for name in names])
    grid[0].tick_params(labeltop=True)
    figure.colorbar(mesh, ax=list(grid), shrink=0.6, label="value, from 0 to 1", pad=0.02)
    return figure


def _draw_kind(axes: Axes, kind: KindData, names: list[str]) -> Any:
    rows = [kind.uniform, *kind.values]
    shown = [[float("nan") if value is None else value for value in row] for row in rows]
    axes.set_facecolor("#EEEEEE")
    mesh = axes.pcolormesh(shown, vmin=0, vmax=1, cmap=MAP, edgecolor="white", linewidth=0.4)
    for place, row in enumerate(rows):
        for column, value in enumerate(row):
            if value is not None:
                axes.text(
                    column + 0.5,
                    place + 0.5,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    style="italic" if place == 0 else "normal",
                    color="white" if value < 0.6 else "black",
                )
    axes.set_yticks([i + 0.5 for i in range(len(rows))], [f"{kind.kind}, uniform", *kind.heads])
    axes.get_yticklabels()[0].set_fontstyle("italic")
    axes.set_xticks([i + 0.5 for i in range(len(names))], [])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh
