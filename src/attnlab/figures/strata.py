"""How often groups of examples are right, a row each with 95% intervals: of one run, or of two runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from attnlab.analysis.compare import PairedShares
from attnlab.analysis.evaluate import Stratum
from attnlab.analysis.statistics import percent
from attnlab.figures.parts import draw_estimates, name_rows
from attnlab.figures.style import BLUE, GREY, ORANGE, new_axes, new_figure, styled
from attnlab.results import Interval

_ROW = 0.3  # inches
_LOOKS = ((BLUE, "o"), (ORANGE, "s"))


@dataclass(frozen=True)
class StrataData:
    """Groups of ``what`` and all together, in percent."""

    what: str
    whole: float
    groups: list[str]
    examples: list[int]
    percent: list[float]
    interval: list[Interval]


@dataclass(frozen=True)
class Differences:
    """Groups of examples that two runs answered, in percent and points."""

    runs: list[str]
    groups: list[str]
    examples: list[int]
    right: list[list[float]]
    difference: list[float]
    interval: list[Interval]


def strata_data(rows: Sequence[Stratum], *, whole: float, what: str) -> StrataData:
    """Columns of an evaluation's rows."""
    return StrataData(
        what,
        100 * whole,
        [row.stratum for row in rows],
        [row.examples for row in rows],
        [100 * row.exact_match for row in rows],
        [_percent(row.exact_match_interval) for row in rows],
    )


@styled()
def draw_strata(data: StrataData) -> Figure:
    """Groups downwards; the dotted line is the share of all examples together."""
    places = range(len(data.groups))
    low, high = zip(*data.interval, strict=True)
    left = max(0.0, min(low) - 0.08 * (100 - min(low)) - 0.1)
    room = 0.03 * (100 - left)  # for dots at the ends
    figure, axes = new_axes(8.0, 1.1 + _ROW * len(data.groups))
    axes.axvline(data.whole, color=GREY, linestyle=":", linewidth=1.2, label="all together")
    axes.hlines(places, low, high, color=ORANGE, linewidth=2, label="95% interval")
    axes.plot(data.percent, places, "o", color=BLUE, zorder=3, clip_on=False, label="right")
    for place, share, examples in zip(places, data.percent, data.examples, strict=True):
        words = f"{percent(share / 100)} of {examples:,}"
        axes.text(1.03, place, words, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
    name_rows(axes, data.groups)
    axes.set(xlim=(left - room, 100 + room), xlabel="% right", ylabel=data.what)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def differences_data(names: list[str], rows: Sequence[PairedShares]) -> Differences:
    """The whole first, then each group."""
    return Differences(
        names,
        [row.group for row in rows],
        [row.examples for row in rows],
        [[100 * share for share in row.right] for row in rows],
        [100 * row.difference for row in rows],
        [_percent(row.interval) for row in rows],
    )


@styled()
def draw_differences(data: Differences) -> Figure:
    """Left, how often each run is right; right, the difference with its 95% interval."""
    places = range(len(data.groups))
    figure = new_figure(9.0, 1.4 + _ROW * len(data.groups))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.2))
    for number, (colour, form) in enumerate(_LOOKS):
        shares = [pair[number] for pair in data.right]
        shift = [place + 0.16 * (2 * number - 1) for place in places]
        left.plot(shares, shift, form, color=colour, label=data.runs[number], clip_on=False, markersize=5)
    right.axvline(0, color=GREY, linewidth=0.8)
    draw_estimates(right, data.difference, data.interval, ("#111111", "D"))
    names = [f"{name} ({n:,})" for name, n in zip(data.groups, data.examples, strict=True)]
    for axes in (left, right):
        axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
        name_rows(axes, names)
    right.tick_params(labelleft=False)
    left.set(xlabel="% right")
    right.set(xlabel=f"points by which {data.runs[0]} is better, 95% interval")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _percent(interval: Sequence[float]) -> Interval:
    low, high = interval
    return 100 * low, 100 * high
