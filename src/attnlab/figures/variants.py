"""Curves of a study's variants: means over seeds, and the spread of the seeds."""

from dataclasses import dataclass
from typing import Any, final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlab.figures.style import GREY, MARKED, new_figure, styled
from attnlab.studies.outcome import CurveWords, StudyResult, VariantResult

_ACROSS = 2  # panels side by side


@final
@dataclass(frozen=True)
class Line:
    """The curve of one variant: means over seeds, and the lowest and the highest seed."""

    variant: str
    at: list[int]
    mean: list[float]
    lowest: list[float]
    highest: list[float]


@final
@dataclass(frozen=True)
class CurvePanel:
    """One curve of all variants; shares in percent."""

    title: str
    over: str
    unit: str
    lines: list[Line]


@final
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


def draw_variants(data: CurvesOfVariants) -> Figure:
    """Lines of means in bands from the lowest to the highest seed; what is no share has a log axis."""
    panels = data.panels
    across = min(_ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = new_figure(4.9 * across, 3.1 * down + 0.5)
    with styled():
        every = figure.subplots(down, across, squeeze=False).flatten()
        for axes, panel in zip(every, panels, strict=False):
            _draw_panel(axes, panel)
        for axes in every[len(panels) :]:
            axes.set_visible(False)
        figure.legend(*_key(panels[0]), loc="outside lower center", ncols=min(6, len(panels[0].lines)))
        figure.suptitle(
            f"Means of {data.seeds} seeds; bands: from the lowest seed to the highest", fontsize=9
        )
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


def _key(panel: CurvePanel) -> tuple[list[Line2D], list[str]]:
    return [Line2D([], [], **look) for look in _looks(panel)], [line.variant for line in panel.lines]


def _looks(panel: CurvePanel) -> list[dict[str, Any]]:
    """Colour and mark of each line; when all are used up, they come again with dashes and hollow marks."""
    looks = []
    for place in range(len(panel.lines)):
        again, which = divmod(place, len(MARKED))
        colour, marker = MARKED[which]
        look = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.2}
        looks.append({**look, "linestyle": "--", "markerfacecolor": "white"} if again else look)
    return looks
