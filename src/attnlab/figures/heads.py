"""Heads and metrics as a map: a row is a head, a column a metric, above each kind uniform attention."""

from dataclasses import dataclass

from matplotlib.figure import Figure

from attnlab.analysis.heads import HeadsResult, MeasuredHead, Metric
from attnlab.figures.parts import heat_map, panels
from attnlab.figures.style import new_figure, styled
from attnlab.results import Interval

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
    names = [name for name in found.metrics if name != "entropy_nats"]
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
    grid = panels(figure, len(kinds), 1, height_ratios=tall)
    for axes, kind in zip(grid, kinds, strict=True):
        values = [kind.uniform, *kind.values]
        rows = [f"{kind.kind}, uniform", *kind.heads]
        axes.set_facecolor("#EEEEEE")
        mesh = heat_map(axes, values, rows=rows, columns=[""] * len(names), words=".2f")
        known = [value for value in kind.uniform if value is not None]
        for word in (axes.get_yticklabels()[0], *axes.texts[: len(known)]):
            word.set_fontstyle("italic")
    grid[0].xaxis.set_ticks_position("top")
    grid[0].set_xticks(grid[0].get_xticks(), [name.replace("_", " ") for name in names])
    figure.colorbar(mesh, ax=grid, shrink=0.6, label="value, from 0 to 1", pad=0.02)
    return figure
