"""A study that crosses two factors: the mean of every cell, and the parts of the variance."""

from dataclasses import dataclass
from typing import Any, final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.seeds import Share
from attnlab.figures.style import BLUE, GREY, MAP, ORANGE, new_figure, styled
from attnlab.results import Interval
from attnlab.studies.outcome import MeasureVariance, StudyResult
from attnlab.studies.study import crossing

_COLOURS = (BLUE, ORANGE, "#009E73", GREY)
_LIGHT = 0.6  # numbers on cells darker than this part of the scale are white


@final
@dataclass(frozen=True)
class FactorsPanel:
    """One measure: the mean of each cell, and what explains its variance, in percent."""

    title: str
    percent: list[list[float]]
    variance: list[float]
    interval: list[Interval]


@final
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
    variance = {row.measure: _parts(row) for row in factors.variance}
    panels = [
        FactorsPanel(
            title=measure.title,
            percent=[[mean(row, column, measure.name) for column in columns] for row in rows],
            variance=[100 * part.share for part in variance[measure.name]],
            interval=[(100 * part.interval[0], 100 * part.interval[1]) for part in variance[measure.name]],
        )
        for measure in shown
    ]
    return CrossedFactors(factors.names, rows, columns, len(result.seeds), panels)


def _parts(row: MeasureVariance) -> tuple[Share, ...]:
    return row.rows, row.columns, row.both, row.seeds


def draw_factors(data: CrossedFactors) -> Figure:
    """A map of cells for each measure, from chance to all right, and below it what explains its spread."""
    panels = data.panels
    figure = new_figure(max(4.8, 4.6 * len(panels)), 1.9 + 0.3 * len(data.rows))
    with styled():
        axes = figure.subplots(2, len(panels), squeeze=False, height_ratios=[0.3 * len(data.rows), 1.1])
        for place, panel in enumerate(panels):
            image = _draw_cells(axes[0, place], panel, data, first=place == 0)
            _draw_parts(axes[1, place], panel, data, first=place == 0)
        figure.colorbar(image, ax=axes[0].tolist(), label=f"% right, mean of {data.seeds} seeds")
    return figure


def _draw_cells(axes: Axes, panel: FactorsPanel, data: CrossedFactors, *, first: bool) -> Any:
    image = axes.imshow(panel.percent, cmap=MAP, vmin=50, vmax=100, aspect="auto")
    for y, line in enumerate(panel.percent):
        for x, value in enumerate(line):
            colour = "white" if value < 50 + 50 * _LIGHT else "black"
            axes.text(x, y, f"{value:.0f}", ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(data.columns)), data.columns, rotation=30, ha="right")
    axes.set_yticks(range(len(data.rows)), data.rows if first else [])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(panel.title)
    return image


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
