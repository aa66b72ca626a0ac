"""What is lost when heads are taken out: each alone, by group, two at once, shared out fairly, for good."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from attnlab.analysis import plural
from attnlab.analysis.ablate.ablation import AblationResult
from attnlab.analysis.ablate.effects import ALL, ranked
from attnlab.analysis.prune.runs import PruningResult
from attnlab.figures.parts import draw_estimates, heat_map, name_rows
from attnlab.figures.style import BLUE, GREY, ORANGE, SIGNED, new_axes, styled
from attnlab.results import Estimate

_LOOKS = ((BLUE, "o"), (ORANGE, "s"), ("#009E73", "D"), ("#111111", "^"))  # a colour and a form a baseline
_ROW = 0.27  # inches
_POINT = 1.0  # cells of at least so many points carry their number


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


@styled()
def draw_ablation(data: AblationData) -> Figure:
    """A mark for each baseline in each head's row, with its 95% interval."""
    figure, axes = _rows(data)
    count = len(data.baselines)
    for index, ((name, cells), look) in enumerate(zip(data.baselines.items(), _LOOKS, strict=False)):
        ends, offset = list(zip(cells.low, cells.high, strict=True)), 0.7 * ((index + 0.5) / count - 0.5)
        draw_estimates(axes, cells.value, ends, look, name, offset)
    spread = ", 95% interval" if data.examples > 1 else ""
    axes.set_xlabel(f"points of exact match lost{spread} ({plural(data.examples, 'example')})")
    figure.legend(loc="outside upper center", ncols=count)
    return figure


@styled()
def draw_groups(data: GroupsData) -> Figure:
    """A map: a row is a head, a column a group of examples or a place of the answer."""
    figure, axes = new_axes(2.8 + 0.62 * len(data.groups), 1.5 + 0.23 * len(data.heads))
    mesh = _points_map(axes, [row.value for row in data.rows], data.heads, data.groups)
    axes.xaxis.set_ticks_position("top")
    axes.set_xticks(axes.get_xticks(), data.groups, rotation=40, ha="left")
    figure.colorbar(mesh, ax=axes, shrink=0.7, label=f"points lost, towards {data.towards}")
    return figure


@styled()
def draw_pairs(data: PairsData) -> Figure:
    """A map below the diagonal, on which stands, in grey, what is lost without the head alone."""
    size = len(data.heads)
    figure, axes = new_axes(3.4 + 0.36 * size, 1.9 + 0.32 * size)
    mesh = _points_map(axes, data.excess, data.heads, data.heads)
    axes.tick_params("x", rotation=90)
    for at, value in zip(axes.get_xticks(), data.alone, strict=True):
        axes.text(at, at, f"{value:.0f}", ha="center", va="center", fontsize=7, color=GREY)
    label = f"points lost without both,\nbeyond the sum of each alone,\ntowards {data.towards}"
    figure.colorbar(mesh, ax=axes, shrink=0.8, label=label)
    return figure


@styled()
def draw_shapley(data: ShapleyData) -> Figure:
    """A filled mark is the Shapley value, an empty one what is lost without the head alone."""
    figure, axes = _rows(data)
    ends = [(value - more, value + more) for value, more in zip(data.values, data.two_errors, strict=True)]
    draw_estimates(axes, data.values, ends, (BLUE, "o"), "Shapley value, two standard errors")
    rows = range(len(data.heads))
    axes.plot(data.alone, rows, "D", color=ORANGE, markersize=4, fillstyle="none", label="lost alone")
    axes.set_xlabel(f"points of exact match ({data.orders} orders, towards {data.towards})")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _about(found: AblationResult) -> dict[str, Any]:
    return {"examples": found.examples, "exact_match": 100 * found.exact_match, "towards": found.towards}


def _alone(found: AblationResult, heads: list[str]) -> list[float]:
    return [100 * found.singles[head].lost[ALL].value for head in heads]


def _points(cells: Iterable[Estimate]) -> Points:
    every = [(cell.value, *cell.ends) for cell in cells]
    value, low, high = ([100 * each for each in column] for column in zip(*every, strict=True))
    return Points(value, low, high)


def _rows(data: _Data) -> tuple[Figure, Axes]:
    """A row for each head, and a line at 0."""
    figure, axes = new_axes(7.5, 1.1 + _ROW * len(data.heads))
    for place in range(1, len(data.heads)):
        axes.axhline(place - 0.5, color=GREY, linewidth=0.3, alpha=0.5)
    name_rows(axes, data.heads)
    axes.axvline(0, color=GREY, linewidth=0.6)
    return figure, axes


def _points_map(
    axes: Axes, values: Sequence[Sequence[float | None]], rows: list[str], columns: list[str]
) -> QuadMesh:
    """Cells in colours that are white at 0, with their number if it is at least a point."""
    most = max([_POINT, *(abs(value) for row in values for value in row if value is not None)])
    words = [[f"{value:.0f}" if abs(value or 0.0) >= _POINT else "" for value in row] for row in values]
    return heat_map(
        axes, values, (-most, most), rows=rows, columns=columns, words=words, colours=SIGNED, edge="#DDDDDD"
    )


@dataclass(frozen=True)
class PruningData:
    """Percent right by heads kept, and where the cut was made."""

    run: str
    kept: list[int]
    percent: list[float]
    removed: list[str | None]
    chosen: int
    test_percent: float
    finetune: int


def pruning_data(found: PruningResult) -> PruningData:
    """The curve of validation examples, and test examples where the cut was made."""
    curve = found.valid_curve
    return PruningData(
        run=found.parent,
        kept=[point.kept for point in curve],
        percent=[100 * point.exact_match for point in curve],
        removed=[point.removed for point in curve],
        chosen=len(found.kept),
        test_percent=100 * found.test.after.exact_match,
        finetune=found.finetune,
    )


@styled()
def draw_pruning(data: PruningData) -> Figure:
    """A curve from all heads to none, each point named by the head that went."""
    figure, axes = new_axes(9.0, 4.0)
    axes.plot(data.kept, data.percent, "o-", color=BLUE, label="validation, no training")
    label = f"test, {data.finetune} steps of training" if data.finetune else "test, no training"
    axes.plot([data.chosen], [data.test_percent], "D", color=ORANGE, markersize=8, label=label, zorder=3)
    axes.axvline(data.chosen, color=GREY, linewidth=0.6, linestyle=":")
    went = zip(data.kept, data.removed, strict=True)
    labels = [f"{kept}" if head is None else f"{head}  {kept}" for kept, head in went]
    axes.set_xticks(data.kept, labels, rotation=60, ha="right", fontsize=7)
    axes.invert_xaxis()
    axes.set(ylim=(-2, 103), ylabel="% wholly right", xlabel="heads kept, and the head that went last")
    axes.set_title(f"{data.run}: heads removed one after the other")
    axes.legend(loc="lower left")
    return figure
