"""A study at a glance: every seed of every variant, with means and 95% intervals."""

from dataclasses import dataclass
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from attnlab.figures.style import BLUE, GREY, ORANGE, new_figure, styled
from attnlab.results import Interval
from attnlab.studies.outcome import StudyResult, VariantResult
from attnlab.studies.study import MeasureWords, Unit

_ACROSS = 2  # panels side by side
_DOTS = (-0.4, 0.08)  # where in a row of height 1 the seeds lie, from first to last
_MEAN = 0.3  # and where, below them, mean and interval
_LOOK: dict[str, Any] = {"s": 20, "color": BLUE, "edgecolors": "white", "linewidths": 0.5, "clip_on": False}
_UNITS = {"share": "%", "count": "count", "steps": "steps"}
_UNITS |= {"ratio": "0 to 1", "seconds": "s", "number": "value"}
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
    return EverySeed(
        result.baseline, result.seeds, [_panel(result, measure) for measure in result.measures]
    )


def _panel(result: StudyResult, measure: MeasureWords) -> SeedsPanel:
    rows = [_row(result, variant, measure) for variant in result.variants]
    known = [x for row in rows for x in (*row.values, *(row.interval or ())) if x is not None]
    return SeedsPanel(
        name=measure.name,
        title=measure.title,
        unit=measure.unit,
        label=f"{_UNITS[measure.unit]} ({measure.better} is better)",
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
    panels = data.panels
    columns = min(_ACROSS, len(panels))
    lines = -(-len(panels) // columns)
    tall = len(panels[0].rows) * min(1.2, 0.45 + 0.03 * len(data.seeds)) + 1.15
    figure = new_figure(9.0 if columns > 1 else 6.0, lines * tall + 0.4)
    figure.set_layout_engine("constrained", h_pad=0.1)
    grid = list(figure.subplots(lines, columns, squeeze=False).flat)
    for index, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
        _draw_panel(axes, panel, data.baseline)
        axes.tick_params(axis="y", labelleft=index % columns == 0)
    for axes in grid[len(panels) :]:
        axes.axis("off")
    drawn = (axes.get_legend_handles_labels() for axes in grid)
    handles = {text: handle for found in drawn for handle, text in zip(*found, strict=True)}
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return figure


def _draw_panel(axes: Axes, panel: SeedsPanel, baseline: str | None) -> None:
    rows = panel.rows
    if panel.baseline is not None:
        axes.axvline(panel.baseline, color=GREY, linestyle=":", linewidth=1, label=f"mean of {baseline}")
    for place, row in enumerate(rows):
        _draw_row(axes, row, place)
    axes.set(xlim=panel.limits, ylim=(len(rows) - 0.45, -0.55), xlabel=panel.label)
    axes.set_title(fill(panel.title, 42))
    axes.set_yticks(range(len(rows)), [fill(row.variant, 24) for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
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
        axes.scatter(x, y, label="one seed", zorder=3, **_LOOK)
    level = place + _MEAN
    if row.interval:
        axes.plot(row.interval, [level] * 2, color=ORANGE, linewidth=2, label="95% interval", zorder=3)
    if row.mean is not None:
        axes.plot(row.mean, level, "D", color=ORANGE, markersize=5, label="mean", zorder=4)
    notes, beside = "\n".join(row.notes), axes.get_yaxis_transform()
    axes.text(1.02, place, notes, transform=beside, va="center", color=GREY, fontsize=8)
