"""What a study tells beside its seeds: curves, crossed factors, and heads that come again.

A curve is a mean over seeds with the spread of the seeds; of two crossed factors the mean of every cell is
drawn, and the parts of the variance; of heads matched across seeds what a group does on average.
"""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlab.analysis.matching import weight
from attnlab.analysis.statistics import MatchedKind
from attnlab.figures.patching import Panel, Panels
from attnlab.figures.style import BLUE, GREY, MARKED, ORANGE, heat_map, new_figure, panels, styled
from attnlab.results import Interval
from attnlab.studies.outcome import HeadsAcrossSeeds, StudyResult, VariantResult
from attnlab.studies.study import CurveWords, crossing

_ACROSS = 2  # panels side by side
_COLOURS = (BLUE, ORANGE, "#009E73", GREY)
_LOOKS = {
    "own\ncolumn": "column",
    "below,\ncarry": "carry_in",
    "below,\nnone": "no_carry_in",
    "other\noperand": "partner",
    "own\ntoken": "diagonal",
    "token\nbefore": "previous",
    "+": "operator",
}


@dataclass(frozen=True)
class Line:
    """The curve of one variant: means over seeds, and the lowest and the highest seed."""

    variant: str
    at: list[int]
    mean: list[float]
    lowest: list[float]
    highest: list[float]


@dataclass(frozen=True)
class CurvePanel:
    """One curve of all variants; shares in percent."""

    title: str
    over: str
    unit: str
    lines: list[Line]


@dataclass(frozen=True)
class CurvesOfVariants:
    """What is drawn of a study's curves."""

    seeds: int
    panels: list[CurvePanel]


def variants_data(result: StudyResult) -> CurvesOfVariants:
    """A panel for each curve, a line for each variant; shares in percent."""
    panels = [
        CurvePanel(curve.title, curve.over, curve.unit, [_line(each, curve) for each in result.variants])
        for curve in result.curves or []
    ]
    return CurvesOfVariants(len(result.seeds), panels)


def _line(variant: VariantResult, curve: CurveWords) -> Line:
    scale = 100 if curve.unit == "share" else 1
    rows = [row for row in (variant.curves or {})[curve.name] if row.mean is not None]
    values = [[scale * value for value in row.values if value is not None] for row in rows]
    return Line(
        variant=variant.name,
        at=[row.at for row in rows],
        mean=[scale * row.mean for row in rows if row.mean is not None],
        lowest=[min(each) for each in values],
        highest=[max(each) for each in values],
    )


@styled()
def draw_variants(data: CurvesOfVariants) -> Figure:
    """Lines of means in bands from the lowest to the highest seed; what is no share has a log axis."""
    count, first = len(data.panels), data.panels[0]
    across = min(_ACROSS, count)
    figure = new_figure(4.9 * across, 3.1 * -(-count // across) + 0.5)
    for axes, panel in zip(panels(figure, count, across), data.panels, strict=True):
        _draw_panel(axes, panel)
    handles = [Line2D([], [], **look) for look in _looks(first)]
    names = [line.variant for line in first.lines]
    figure.legend(handles, names, loc="outside lower center", ncols=min(6, len(names)))
    figure.suptitle(f"Means of {data.seeds} seeds; bands: from the lowest seed to the highest", fontsize=9)
    return figure


def _draw_panel(axes: Axes, panel: CurvePanel) -> None:
    for line, look in zip(panel.lines, _looks(panel), strict=True):
        axes.fill_between(line.at, line.lowest, line.highest, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(line.at, line.mean, **look)
    axes.set_xscale("log", base=2)
    places = sorted({place for line in panel.lines for place in line.at})
    labels = [place for place in places if place & (place - 1) == 0]  # powers of two leave room for labels
    axes.set_xticks(labels, [f"{place:,}" for place in labels], rotation=45 if len(labels) > 8 else 0)
    axes.minorticks_off()
    axes.set(xlabel=panel.over, title=panel.title)
    if panel.unit == "share":
        axes.axhline(50, color=GREY, linewidth=0.8, linestyle=":")
        axes.set(ylim=(45, 102), ylabel="% right")
    else:
        axes.set_yscale("log")


def _looks(panel: CurvePanel) -> list[dict[str, Any]]:
    """Colour and mark of each line; when all are used up, they come again with dashes and hollow marks."""
    looks = []
    for place in range(len(panel.lines)):
        again, which = divmod(place, len(MARKED))
        colour, marker = MARKED[which]
        look = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.2}
        looks.append({**look, "linestyle": "--", "markerfacecolor": "white"} if again else look)
    return looks


@dataclass(frozen=True)
class FactorsPanel:
    """One measure: the mean of each cell, and what explains its variance, in percent."""

    title: str
    percent: list[list[float]]
    variance: list[float]
    interval: list[Interval]


@dataclass(frozen=True)
class CrossedFactors:
    """What is drawn of two crossed factors."""

    names: list[str]
    rows: list[str]
    columns: list[str]
    seeds: int
    panels: list[FactorsPanel]


def factors_data(result: StudyResult) -> CrossedFactors:
    """For each measure but the first, which is of lengths in training: cells and variance, in percent.

    Rows and columns are ordered by their mean over all measures drawn, so that what works stands together.
    """
    factors, shown = result.factors, result.measures[1:] or result.measures
    assert factors is not None
    found = {variant.name: variant.measures for variant in result.variants}

    def mean(row: str, column: str, measure: str) -> float:
        return 100 * (found[crossing(row, column)][measure].mean or 0.0)

    def over(rows: list[str], columns: list[str]) -> float:
        cells = [mean(r, c, m.name) for r in rows for c in columns for m in shown]
        return sum(cells) / len(cells)

    rows = sorted(factors.rows, key=lambda row: -over([row], factors.columns))
    columns = sorted(factors.columns, key=lambda column: -over(factors.rows, [column]))
    variance = {row.measure: (row.rows, row.columns, row.both, row.seeds) for row in factors.variance}
    drawn = [
        FactorsPanel(
            title=measure.title,
            percent=[[mean(row, column, measure.name) for column in columns] for row in rows],
            variance=[100 * part.share for part in variance[measure.name]],
            interval=[(100 * part.interval[0], 100 * part.interval[1]) for part in variance[measure.name]],
        )
        for measure in shown
    ]
    return CrossedFactors(factors.names, rows, columns, len(result.seeds), drawn)


@styled()
def draw_factors(data: CrossedFactors) -> Figure:
    """A map of cells for each measure, from chance to all right, and below it what explains its spread."""
    figure = new_figure(max(4.8, 4.6 * len(data.panels)), 1.9 + 0.3 * len(data.rows))
    axes = figure.subplots(2, len(data.panels), squeeze=False, height_ratios=[0.3 * len(data.rows), 1.1])
    for place, panel in enumerate(data.panels):
        image = _draw_cells(axes[0, place], panel, data, first=place == 0)
        _draw_parts(axes[1, place], panel, data, first=place == 0)
    figure.colorbar(image, ax=axes[0].tolist(), label=f"% right, mean of {data.seeds} seeds")
    return figure


def _draw_cells(axes: Axes, panel: FactorsPanel, data: CrossedFactors, *, first: bool) -> Any:
    words = [[f"{value:.0f}" for value in row] for row in panel.percent]
    names = data.rows if first else [""] * len(data.rows)
    mesh = heat_map(axes, panel.percent, (50, 100), rows=names, columns=data.columns, words=words, size=8)
    axes.set_xticks(axes.get_xticks(), data.columns, rotation=30, ha="right")
    axes.set_title(panel.title)
    return mesh


def _draw_parts(axes: Axes, panel: FactorsPanel, data: CrossedFactors, *, first: bool) -> None:
    names = (*data.names, "both together", "seeds")
    places = range(len(names))
    low = [max(0.0, share - ends[0]) for share, ends in zip(panel.variance, panel.interval, strict=True)]
    high = [max(0.0, ends[1] - share) for share, ends in zip(panel.variance, panel.interval, strict=True)]
    axes.barh(places, panel.variance, xerr=[low, high], color=_COLOURS, height=0.7, ecolor="black")
    for y, (share, more) in enumerate(zip(panel.variance, high, strict=True)):
        axes.text(max(0.0, share) + more + 2, y, f"{share:.0f}%", va="center", fontsize=8)
    axes.set_yticks(places, names if first else [])
    axes.invert_yaxis()
    axes.set(
        xlim=(0, 115), xticks=(0, 25, 50, 75, 100), xlabel="% of the variance explained (omega squared)"
    )


def matched_data(variant: HeadsAcrossSeeds) -> Panels:
    """A panel for each kind of attention of a variant, a row for each group, in percent.

    A row goes by the names of its heads, one a seed. Columns: weight on sets of keys, answers lost without
    the head, and the share of a carry that it brings to each column.
    """
    return Panels(
        f"Heads of {len(variant.seeds)} seeds, matched by what they do: means",
        "weight, answers lost, share of a carry, in %",
        [[_matched_panel(kind)] for kind in variant.kinds],
    )


def _matched_panel(kind: MatchedKind) -> Panel:
    groups = sorted(kind.groups, key=lambda group: -max(group.carries.values(), default=0.0))
    known = {name.split(" at ")[0] for group in groups for name in group.looks}
    looks = {label: metric for label, metric in _LOOKS.items() if metric in known}
    carries = list(groups[0].carries)
    return Panel(
        kind.kind,
        [" ".join(map(_short, group.heads)) for group in groups],
        [*looks, "lost", *(f"carry {column}" for column in carries)],
        [
            [
                100 * value
                for value in (
                    *(weight(group.looks, metric) for metric in looks.values()),
                    next(iter(group.costs.values())),
                    *(group.carries[column] for column in carries),
                )
            ]
            for group in groups
        ],
    )


def _short(head: str) -> str:
    """Layer and index: ``1.3`` of ``decoder.1.cross.3``."""
    _, layer, _, index = head.split(".")
    return f"{layer}.{index}"
