"""A study in figures: every seed of every variant, curves, crossed factors, and heads that come again.

A curve is a mean over seeds with the spread of the seeds; of two crossed factors the mean of every cell is
drawn, and the parts of the variance; of heads matched across seeds what a group does on average.
"""

from dataclasses import dataclass
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from attnlab.analysis.matching import weight
from attnlab.analysis.statistics import MatchedKind
from attnlab.figures.parts import heat_map, name_rows, panels
from attnlab.figures.patching import Panel, Panels
from attnlab.figures.style import BLUE, GREY, MARKED, ORANGE, new_figure, styled
from attnlab.results import Interval
from attnlab.studies.outcome import HeadsAcrossSeeds, StudyResult, VariantResult
from attnlab.studies.study import CurveWords, MeasureWords, Unit, crossing

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
_DOTS = (-0.4, 0.08)  # where in a row of height 1 the seeds lie, from first to last
_MEAN = 0.3  # and where, below them, mean and interval
_DOT: dict[str, Any] = {"s": 20, "color": BLUE, "edgecolors": "white", "linewidths": 0.5, "clip_on": False}
_UNITS = {"share": "%", "ratio": "0 to 1", "seconds": "s", "number": "value"}  # others are their own word
_WHOLE = ("count", "steps")


@dataclass(frozen=True, kw_only=True)
class SeedsRow:
    """One variant: every seed, mean and interval, and what is noted beside them."""

    variant: str
    values: list[float | None]
    mean: float | None
    interval: Interval | None
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class SeedsPanel:
    """One measure; shares in percent."""

    name: str
    title: str
    unit: Unit
    label: str
    limits: list[float]
    baseline: float | None
    rows: list[SeedsRow]


@dataclass(frozen=True)
class EverySeed:
    """What is drawn of every seed of a study."""

    baseline: str | None
    seeds: list[int]
    panels: list[SeedsPanel]


def seeds_data(result: StudyResult) -> EverySeed:
    """A panel for each measure of a study's result, a row for each variant, shares in percent."""
    drawn = [_measure(result, measure) for measure in result.measures]
    return EverySeed(result.baseline, result.seeds, drawn)


def _measure(result: StudyResult, measure: MeasureWords) -> SeedsPanel:
    rows = [_row(result, variant, measure) for variant in result.variants]
    known = [x for row in rows for x in (*row.values, *(row.interval or ())) if x is not None]
    return SeedsPanel(
        name=measure.name,
        title=measure.title,
        unit=measure.unit,
        label=f"{_UNITS.get(measure.unit, measure.unit)} ({measure.better} is better)",
        limits=_limits(known, measure.unit),
        baseline=next((row.mean for row in rows if row.variant == result.baseline), None),
        rows=rows,
    )


def _row(result: StudyResult, variant: VariantResult, measure: MeasureWords) -> SeedsRow:
    found = variant.measures[measure.name]
    scale = 100 if measure.unit == "share" else 1
    return SeedsRow(
        variant=variant.name,
        values=[None if value is None else scale * value for value in found.values],
        mean=None if found.mean is None else scale * found.mean,
        interval=None if found.interval is None else (scale * found.interval[0], scale * found.interval[1]),
        notes=["anecdotal"] * found.anecdotal + _missing(result, variant, found.values),
    )


def _missing(result: StudyResult, variant: VariantResult, values: list[float | None]) -> list[str]:
    """How many seeds have no value, and why: failed, not run yet, or run and never got there."""
    seeds = result.seeds
    failed = {each.seed for each in variant.failed}
    seconds = result.timings.get(variant.name, [0.0] * len(seeds))
    waiting = {seed for seed, each in zip(seeds, seconds, strict=True) if each is None} - failed
    without = {seed for seed, value in zip(seeds, values, strict=True) if value is None}
    groups = {"failed": without & failed, "not yet": without & waiting, "never": without - failed - waiting}
    return [f"{len(group)} of {len(seeds)} {word}" for word, group in groups.items() if group]


def _limits(known: list[float], unit: str) -> list[float]:
    """Ends of an axis that leave room for the outermost dots; equal values get some width."""
    low, high = (min(known), max(known)) if known else (0.0, 100.0 if unit == "share" else 1.0)
    if low == high:
        width = max(0.05 * abs(low), 1.0) if unit in _WHOLE else 0.05 * abs(low) or 1.0
        low, high = low - width, high + width
        if unit == "share":
            low, high = max(0.0, low), min(100.0, high)
    margin = 0.05 * (high - low)
    return [low - margin, high + margin]


@styled()
def draw_seeds(data: EverySeed) -> Figure:
    """A dot is a seed, the first above the last, so that equal values stay apart; below them stand the
    mean and its interval. The dotted line is the mean of the baseline.
    """
    count, columns = len(data.panels), min(_ACROSS, len(data.panels))
    tall = len(data.panels[0].rows) * min(1.2, 0.45 + 0.03 * len(data.seeds)) + 1.15
    figure = new_figure(9.0 if columns > 1 else 6.0, -(-count // columns) * tall + 0.4)
    figure.set_layout_engine("constrained", h_pad=0.1)
    grid = panels(figure, count, columns)
    for index, (axes, panel) in enumerate(zip(grid, data.panels, strict=True)):
        _draw_measure(axes, panel, data.baseline)
        axes.tick_params(axis="y", labelleft=index % columns == 0)
    drawn = (axes.get_legend_handles_labels() for axes in grid)
    handles = {text: handle for found in drawn for handle, text in zip(*found, strict=True)}
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return figure


def _draw_measure(axes: Axes, panel: SeedsPanel, baseline: str | None) -> None:
    if panel.baseline is not None:
        axes.axvline(panel.baseline, color=GREY, linestyle=":", linewidth=1, label=f"mean of {baseline}")
    for place, row in enumerate(panel.rows):
        _draw_row(axes, row, place)
    name_rows(axes, [fill(row.variant, 24) for row in panel.rows])
    axes.set(xlim=panel.limits, ylim=(len(panel.rows) - 0.45, -0.55), xlabel=panel.label)
    axes.set_title(fill(panel.title, 42))
    whole = panel.unit in _WHOLE
    bins = 4 if panel.limits[1] < 100_000 else 3  # long numbers need room
    axes.xaxis.set_major_locator(MaxNLocator(bins, steps=[1, 2, 5, 10], integer=whole))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if whole else f"{x:.6g}"))


def _draw_row(axes: Axes, row: SeedsRow, place: int) -> None:
    first, last = _DOTS
    step = (last - first) / max(1, len(row.values) - 1)
    dots = [(x, place + first + i * step) for i, x in enumerate(row.values) if x is not None]
    if place:
        axes.axhline(place - 0.5, color=GREY, linewidth=0.4, alpha=0.5)
    if dots:
        x, y = zip(*dots, strict=True)
        axes.scatter(x, y, label="one seed", zorder=3, **_DOT)
    level = place + _MEAN
    if row.interval:
        axes.plot(row.interval, [level] * 2, color=ORANGE, linewidth=2, label="95% interval", zorder=3)
    if row.mean is not None:
        axes.plot(row.mean, level, "D", color=ORANGE, markersize=5, label="mean", zorder=4)
    notes, beside = "\n".join(row.notes), axes.get_yaxis_transform()
    axes.text(1.02, place, notes, transform=beside, va="center", color=GREY, fontsize=8)


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
    grid = panels(figure, count, across)
    for axes, panel in zip(grid, data.panels, strict=True):
        _draw_curve(axes, panel)
    names = [line.variant for line in first.lines]
    figure.legend(grid[0].lines[: len(names)], names, loc="outside lower center", ncols=min(6, len(names)))
    figure.suptitle(f"Means of {data.seeds} seeds; bands: from the lowest seed to the highest", fontsize=9)
    return figure


def _draw_curve(axes: Axes, panel: CurvePanel) -> None:
    for place, line in enumerate(panel.lines):
        again, which = divmod(place, len(MARKED))
        colour, marker = MARKED[which]  # used up, they come again with dashes and hollow marks
        axes.fill_between(line.at, line.lowest, line.highest, color=colour, alpha=0.15, linewidth=0)
        (drawn,) = axes.plot(line.at, line.mean, color=colour, marker=marker, markersize=4, linewidth=1.2)
        if again:
            drawn.set(linestyle="--", markerfacecolor="white")
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


def _draw_cells(axes: Axes, panel: FactorsPanel, data: CrossedFactors, *, first: bool) -> QuadMesh:
    names = data.rows if first else [""] * len(data.rows)
    mesh = heat_map(axes, panel.percent, (50, 100), rows=names, columns=data.columns, words=".0f", size=8)
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
    axes.set(xlim=(0, 115), xticks=range(0, 101, 25), xlabel="% of the variance explained (omega squared)")


def matched_data(variant: HeadsAcrossSeeds) -> Panels:
    """A panel for each kind of attention of a variant, a row for each group, in percent.

    A row goes by layer and index of its heads, one a seed: ``1.3`` is ``decoder.1.cross.3``. Columns are
    weight on sets of keys, answers lost without the head, and the share of a carry that it brings to each.
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
    percent = []
    for group in groups:
        looked = [weight(group.looks, metric) for metric in looks.values()]
        lost = next(iter(group.costs.values()))
        shares = (*looked, lost, *(group.carries[column] for column in carries))
        percent.append([100 * share for share in shares])
    return Panel(
        kind.kind,
        [" ".join(".".join(head.split(".")[1::2]) for head in group.heads) for group in groups],
        [*looks, "lost", *(f"carry {column}" for column in carries)],
        percent,
    )
