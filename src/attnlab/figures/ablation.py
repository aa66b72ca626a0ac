"""What is lost when heads are taken out: each alone, by group, two at once, and shared out fairly."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.ablate import ALL, AblationResult, ranked
from attnlab.figures.style import BLUE, GREY, ORANGE, new_figure, styled
from attnlab.results import Estimate

_LOOKS = (("o", BLUE), ("s", ORANGE), ("D", "#009E73"), ("^", "#111111"))  # a form and a colour a baseline
_ROW = 0.27  # inches
_POINT = 1.0  # cells of at least so many points carry their number
_SIGNED = "PuOr_r"  # white at 0


@dataclass(frozen=True)
class Points:
    """Values and ends of intervals in points; a missing interval has no width."""

    value: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True, kw_only=True)
class _Data:
    """Of how many examples, of which so many percent are right, and towards which baseline."""

    examples: int
    exact_match: float
    towards: str
    heads: list[str]


@dataclass(frozen=True, kw_only=True)
class AblationData(_Data):
    """Points lost without each head towards each baseline."""

    baselines: dict[str, Points]


@dataclass(frozen=True, kw_only=True)
class GroupsData(_Data):
    """Points lost without each head by group of examples and by place."""

    groups: list[str]
    examples_in_groups: dict[str, int]
    rows: list[Points]


@dataclass(frozen=True, kw_only=True)
class PairsData(_Data):
    """Points lost without each head alone, and without each two heads beyond the sum of both."""

    alone: list[float]
    excess: list[list[float | None]]


@dataclass(frozen=True, kw_only=True)
class ShapleyData(_Data):
    """Shapley values in points with two standard errors, beside what is lost alone."""

    orders: int
    values: list[float]
    two_errors: list[float]
    alone: list[float]


def ablation_data(found: AblationResult) -> AblationData:
    """Heads ranked by the first baseline."""
    heads = ranked(found.singles.values())
    return AblationData(
        **_about(found),
        heads=heads,
        baselines={
            name: _points({row.head: row.lost[ALL] for row in rows}[head] for head in heads)
            for name, rows in found.baselines.items()
        },
    )


def groups_data(found: AblationResult) -> GroupsData:
    """Towards the first baseline."""
    rows = found.singles
    heads = ranked(rows.values())
    return GroupsData(
        **_about(found),
        heads=heads,
        groups=list(rows[heads[0]].groups),
        examples_in_groups=found.strata,
        rows=[_points(rows[head].groups.values()) for head in heads],
    )


def pairs_data(found: AblationResult) -> PairsData:
    """Heads in the order of computation."""
    heads = list(found.singles)
    excess: list[list[float | None]] = [[None] * len(heads) for _ in heads]
    for pair in found.pairs or []:
        a, b = (heads.index(head) for head in pair.heads)
        excess[max(a, b)][min(a, b)] = 100 * pair.excess.value
    return PairsData(**_about(found), heads=heads, alone=_alone(found, heads), excess=excess)


def shapley_data(found: AblationResult) -> ShapleyData:
    """The highest value first."""
    assert found.shapley is not None
    rows = found.shapley.ranked
    heads = [row.head for row in rows]
    return ShapleyData(
        **_about(found),
        orders=found.shapley.orders,
        heads=heads,
        values=[100 * row.value for row in rows],
        two_errors=[200 * (row.error or 0.0) for row in rows],
        alone=_alone(found, heads),
    )


def draw_ablation(data: AblationData) -> Figure:
    """A mark for each baseline in each head's row, with its 95% interval."""
    figure = new_figure(7.5, 1.1 + _ROW * len(data.heads))
    count = len(data.baselines)
    with styled():
        axes = figure.subplots()
        for index, ((name, cells), (form, colour)) in enumerate(
            zip(data.baselines.items(), _LOOKS, strict=False)
        ):
            y = [place + 0.7 * ((index + 0.5) / count - 0.5) for place in range(len(data.heads))]
            _spans(axes, cells.low, cells.high, y, colour)
            axes.plot(cells.value, y, form, color=colour, markersize=4, label=name, zorder=3)
        _name_rows(axes, data.heads)
        axes.axvline(0, color=GREY, linewidth=0.6)
        axes.set_xlabel(f"points of exact match lost, 95% interval ({data.examples:,} examples)")
        figure.legend(loc="outside upper center", ncols=count)
    return figure


def draw_groups(data: GroupsData) -> Figure:
    """A map: a row is a head, a column a group of examples or a place of the answer."""
    rows = [row.value for row in data.rows]
    wide, tall = len(data.groups), len(data.heads)
    figure = new_figure(2.8 + 0.62 * wide, 1.5 + 0.23 * tall)
    with styled():
        axes = figure.subplots()
        mesh = _signed_map(axes, rows)
        axes.set_xticks([i + 0.5 for i in range(wide)], data.groups, rotation=40, ha="left")
        axes.xaxis.set_ticks_position("top")
        axes.set_yticks([i + 0.5 for i in range(tall)], data.heads)
        axes.tick_params(length=0)
        figure.colorbar(mesh, ax=axes, shrink=0.7, label=f"points lost, towards {data.towards}")
    return figure


def draw_pairs(data: PairsData) -> Figure:
    """A map below the diagonal, on which stands, in grey, what is lost without the head alone."""
    size = len(data.heads)
    figure = new_figure(3.4 + 0.36 * size, 1.9 + 0.32 * size)
    with styled():
        axes = figure.subplots()
        mesh = _signed_map(axes, data.excess)
        for place, value in enumerate(data.alone):
            _write(axes, place, place, value, GREY)
        places = [i + 0.5 for i in range(size)]
        axes.set_xticks(places, data.heads, rotation=90)
        axes.set_yticks(places, data.heads)
        axes.tick_params(length=0)
        label = f"points lost without both,\nbeyond the sum of each alone,\ntowards {data.towards}"
        figure.colorbar(mesh, ax=axes, shrink=0.8, label=label)
    return figure


def draw_shapley(data: ShapleyData) -> Figure:
    """A filled mark is the Shapley value, an empty one what is lost without the head alone."""
    figure = new_figure(7.5, 1.1 + _ROW * len(data.heads))
    y = [float(place) for place in range(len(data.heads))]
    low = [value - error for value, error in zip(data.values, data.two_errors, strict=True)]
    high = [value + error for value, error in zip(data.values, data.two_errors, strict=True)]
    with styled():
        axes = figure.subplots()
        _spans(axes, low, high, y, BLUE)
        axes.plot(data.values, y, "o", color=BLUE, markersize=5, label="Shapley value, two standard errors")
        axes.plot(data.alone, y, "D", color=ORANGE, markersize=4, fillstyle="none", label="lost alone")
        _name_rows(axes, data.heads)
        axes.axvline(0, color=GREY, linewidth=0.6)
        axes.set_xlabel(f"points of exact match ({data.orders} orders, towards {data.towards})")
        figure.legend(loc="outside upper center", ncols=2)
    return figure


def _about(found: AblationResult) -> dict[str, Any]:
    return {
        "examples": found.examples,
        "exact_match": 100 * found.exact_match,
        "towards": found.towards,
    }


def _alone(found: AblationResult, heads: list[str]) -> list[float]:
    return [100 * found.singles[head].lost[ALL].value for head in heads]


def _points(cells: Iterable[Estimate]) -> Points:
    every = [(cell.value, *(cell.interval or (cell.value, cell.value))) for cell in cells]
    value, low, high = ([100 * each for each in column] for column in zip(*every, strict=True))
    return Points(value, low, high)


def _spans(axes: Axes, low: list[float], high: list[float], y: list[float], colour: str) -> None:
    axes.hlines(y, low, high, color=colour, linewidth=1.6, alpha=0.7)


def _name_rows(axes: Axes, names: list[str]) -> None:
    for place in range(1, len(names)):
        axes.axhline(place - 0.5, color=GREY, linewidth=0.3, alpha=0.5)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _signed_map(axes: Axes, rows: Sequence[Sequence[float | None]]) -> Any:
    """Cells in colours that are white at 0, with their number if it is at least a point."""
    shown = [[float("nan") if value is None else value for value in row] for row in rows]
    most = max([_POINT, *(abs(value) for row in rows for value in row if value is not None)])
    mesh = axes.pcolormesh(shown, vmin=-most, vmax=most, cmap=_SIGNED, edgecolor="#DDDDDD", linewidth=0.4)
    for place, row in enumerate(rows):
        for column, value in enumerate(row):
            if value is not None and abs(value) >= _POINT:
                _write(axes, column, place, value, "white" if abs(value) > 0.6 * most else "black")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    return mesh


def _write(axes: Axes, column: int, row: int, value: float, colour: str) -> None:
    axes.text(column + 0.5, row + 0.5, f"{value:.0f}", ha="center", va="center", fontsize=7, color=colour)
