"""A sweep in three figures: how its trials went, which parameters they had, and which of those mattered.

Only finished trials can be best. Parallel coordinates are Inselberg's (1985): an axis for each parameter, a
line for each trial.
"""

import json
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor, isfinite, log10, nan
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlab.figures.parts import name_rows
from attnlab.figures.style import BLUE, GREY, MAP, ORANGE, new_axes, new_figure, styled
from attnlab.studies.sweeps.parts import Goal, Scale, Sought, TrialResult

_WORD = 14  # letters of a choice beside its axis
_NAME = 18  # letters of a parameter's name below its axis
_LOG = 100  # a loss that falls by more than this is drawn on a logarithmic axis
_SHADES = 64  # steps of colour along the axis of the values
_SIGNS: dict[str, dict[str, Any]] = {
    "finished": {"marker": "o", "color": BLUE, "markersize": 5},
    "pruned": {"marker": "v", "color": GREY, "markersize": 6, "fillstyle": "none"},
    "no value": {"marker": "x", "color": GREY, "markersize": 6, "zorder": 3},
}


Tick = tuple[float, str]
"""A place from 0 to 1, and what stands there."""


@dataclass(frozen=True)
class Points:
    """Trials by number, and their values."""

    number: list[int]
    value: list[float]


@dataclass(frozen=True, kw_only=True)
class History:
    """How the trials went; ``best`` is that of the finished so far, ``without`` have no value."""

    metric: str
    goal: Goal
    finished: Points
    pruned: Points
    without: list[int]
    best: list[float]
    last: int | None
    scale: Scale


@dataclass(frozen=True)
class Best:
    """The best trial and its value."""

    number: int
    value: float


@dataclass(frozen=True)
class ParallelAxis:
    """The axis of a parameter, or of the value."""

    name: str
    scale: Scale
    ticks: list[Tick]


@dataclass(frozen=True)
class ParallelLine:
    """A trial's place on every axis, None where it lacks the parameter."""

    number: int
    places: list[float | None]


@dataclass(frozen=True, kw_only=True)
class Parallel:
    """Parallel coordinates; parameters that are the same in all trials are left out."""

    metric: str
    goal: Goal
    best: Best | None
    axes: list[ParallelAxis]
    lines: list[ParallelLine]
    left_out: list[str]


@dataclass(frozen=True)
class Importance:
    """Parameters from the most to the least important, shares in percent."""

    metric: str
    names: list[str]
    percent: list[float]


def history_data(trials: list[TrialResult], sought: Sought) -> History:
    """Numbers and values of finished and of pruned trials, and the best of the finished so far."""
    finished, pruned = _with_value(trials, "finished"), _with_value(trials, "pruned")
    ended = {trial.number for trial in trials if trial.state != "running"}
    return History(
        metric=sought.name,
        goal=sought.goal,
        finished=Points([*finished], [*finished.values()]),
        pruned=Points([*pruned], [*pruned.values()]),
        without=sorted(ended - finished.keys() - pruned.keys()),
        best=list(accumulate(finished.values(), max if sought.goal == "maximize" else min)),
        last=max(ended, default=None),
        scale=_value_scale([*finished.values(), *pruned.values()], sought.goal),
    )


@styled()
def draw_history(data: History) -> Figure:
    """Dots are finished trials, triangles pruned ones where they stopped, crosses those without a value."""
    finished, pruned, without = data.finished, data.pruned, data.without
    if data.last is None or not finished.number:
        return _say("no finished trial")
    figure, axes = new_axes(9.0, 3.2)
    numbers, best = [*finished.number, data.last], [*data.best, data.best[-1]]
    axes.step(numbers, best, where="post", color=ORANGE, label="best so far")
    at_bottom = [0.04] * len(without)
    for label, x, y, transform in (
        ("finished", finished.number, finished.value, axes.transData),
        ("pruned", pruned.number, pruned.value, axes.transData),
        ("no value", without, at_bottom, axes.get_xaxis_transform()),
    ):
        if x:
            axes.plot(x, y, linestyle="none", label=label, transform=transform, **_SIGNS[label])
    better = "higher" if data.goal == "maximize" else "lower"
    axes.set(xlabel="trial", ylabel=f"{data.metric} ({better} is better)", yscale=data.scale)
    axes.set_xlim(min(*numbers, *pruned.number, *without) - 0.5, data.last + 0.5)
    axes.margins(y=0.12)
    axes.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    figure.legend(loc="outside upper right", ncols=4)
    return figure


def parallel_data(
    trials: list[TrialResult], sought: Sought, *, scales: dict[str, Scale], best: int | None = None
) -> Parallel:
    """Axes and, for each finished trial, its place on every one from 0 to 1; the last is the value.

    A parameter that is the same in all trials is left out; where a trial lacks one, its place is ``None``.
    ``best`` is the number of the best trial, by default the first with the best value.
    """
    values = _with_value(trials, "finished")
    found: dict[str, dict[int, Any]] = {}
    for trial in trials:
        for name, value in trial.parameters.items() if trial.number in values else ():
            found.setdefault(name, {})[trial.number] = value
    varied = {name: column for name, column in found.items() if len(set(map(_word, column.values()))) > 1}
    columns = [_column(name, column, scales.get(name, "linear")) for name, column in varied.items()]
    if values:
        columns.append(_column(sought.name, values, _value_scale([*values.values()], sought.goal)))
    if best is None and values:
        best = (max if sought.goal == "maximize" else min)(values, key=values.__getitem__)
    return Parallel(
        metric=sought.name,
        goal=sought.goal,
        best=None if best is None else Best(best, values[best]),
        axes=[axis for axis, _ in columns],
        lines=[ParallelLine(n, [places.get(n) for _, places in columns]) for n in values],
        left_out=[name for name in found if name not in varied],
    )


@styled()
def draw_parallel(data: Parallel) -> Figure:
    """A line for each trial, the darker the better; the best one is thick and orange."""
    count = len(data.axes)
    most = max((len(axis.ticks) for axis in data.axes), default=0)
    if count < 2:
        return _say("no parameter varies" if count else "no finished trial")
    figure, axes = new_axes(max(6.0, 1.5 * count), max(4.0, 0.2 * most + 1.2))
    for line in data.lines:
        places = [nan if place is None else place for place in line.places]
        axes.plot(places, color=_shade(places[-1], data), linewidth=1.3, alpha=0.85, zorder=2)
        if data.best is not None and line.number == data.best.number:
            label = f"best: trial {line.number} with {data.best.value:.4g}"
            axes.plot(places, color=ORANGE, linewidth=3, label=label, zorder=3)
    for place, axis in enumerate(data.axes):
        _draw_axis(axes, axis, place)
    shades = [[_shade(i / _SHADES, data)] for i in range(_SHADES + 1)]
    strip = (count - 1.03, count - 0.97, 0, 1)
    axes.imshow(shades, extent=strip, origin="lower", aspect="auto", zorder=4)
    axes.set(xlim=(-0.1, count - 0.45), ylim=(-0.04, 1.04), yticks=[])
    axes.set_xticks(range(count), [_wrap(axis.name) for axis in data.axes])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if data.left_out:
        same = fill(f"the same in all trials: {', '.join(data.left_out)}", 20 * count)
        axes.set_xlabel(same, color=GREY, fontsize=8)
    figure.legend(loc="outside upper right")
    return figure


def importance_data(shares: dict[str, float], *, metric: str) -> Importance:
    """Parameters from the most to the least important, shares in percent."""
    ordered = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return Importance(metric, [name for name, _ in ordered], [100 * share for _, share in ordered])


@styled()
def draw_importance(data: Importance) -> Figure:
    """A bar for each parameter: its share of what moved the metric."""
    names, shares = data.names, data.percent
    if not names:
        return _say("no finished trial")
    figure, axes = new_axes(6.5, 0.3 * len(names) + 1.0)
    axes.barh(range(len(names)), shares, color=BLUE, height=0.6)
    for place, share in enumerate(shares):
        axes.text(share + 1, place, f"{share:.1f}%", va="center", fontsize=8)
    name_rows(axes, [_wrap(name, 36) for name in names])
    axes.spines["left"].set_visible(True)
    axes.set(xlim=(0, max(shares) * 1.02 + 8), xlabel=f"% of importance for {data.metric}")
    return figure


def _with_value(trials: list[TrialResult], state: str) -> dict[int, float]:
    """Values by number, in the order of the numbers."""
    kept = {t.number: t.value for t in trials if t.state == state and t.value is not None}
    return {number: kept[number] for number in sorted(kept) if isfinite(kept[number])}


def _value_scale(values: list[float], goal: Goal) -> Scale:
    wide = goal == "minimize" and values and 0 < min(values) < max(values) / _LOG
    return "log" if wide else "linear"


def _column(name: str, column: dict[int, Any], scale: Scale) -> tuple[ParallelAxis, dict[int, float]]:
    """Places by number of trial, and ticks; what is no number is a choice, what is not positive not log."""
    values = column.values()
    if scale == "choice" or any(isinstance(v, bool) or not isinstance(v, int | float) for v in values):
        places, ticks = _choices(column)
        return ParallelAxis(name, "choice", ticks), places
    scale = "log" if scale == "log" and min(values) > 0 else "linear"
    places, ticks = _along({n: float(v) for n, v in column.items()}, scale)
    return ParallelAxis(name, scale, ticks), places


def _along(column: dict[int, float], scale: Scale) -> tuple[dict[int, float], list[Tick]]:
    low, high = min(column.values()), max(column.values())
    if scale == "log":
        ticks = _log_ticks(low, high)
    else:
        whole = all(value.is_integer() for value in column.values())
        found = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], integer=whole).tick_values(low, high)
        ticks = [float(f"{tick:.12g}") for tick in found]  # 0.3, not 0.30000000000000004
    inside = {tick for tick in ticks if low <= tick <= high}
    ticks = sorted(inside if len(inside) > 1 else {low, high})
    measure = log10 if scale == "log" else float
    start, length = measure(low), measure(high) - measure(low)

    def place(value: float) -> float:
        return (measure(value) - start) / length if length else 0.5

    labels = [(place(tick), f"{tick:.4g}" if abs(tick) < 10_000 else f"{tick:g}") for tick in ticks]
    return {number: place(value) for number, value in column.items()}, labels


def _choices(column: dict[int, Any]) -> tuple[dict[int, float], list[Tick]]:
    """Evenly spaced: numbers by size, upwards; words by the alphabet, downwards."""
    words = {_word(value): value for value in column.values()}
    numeric = all(isinstance(value, int | float) for value in words.values())
    ordered = sorted(words, key=words.__getitem__) if numeric else sorted(words, reverse=True)
    place = {word: i / max(1, len(words) - 1) for i, word in enumerate(ordered)}
    places = {number: place[_word(value)] for number, value in column.items()}
    return places, [(place[word], _shorten(word, _WORD)) for word in ordered]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, at most about five; over less than two decades also their double and fivefold."""
    first, last = floor(log10(low)), ceil(log10(high))
    powers = range(first, last + 1, 1 + (last - first) // 6)
    digits = (1, 2, 5) if high < 100 * low else (1,)
    return [float(f"{digit}e{power}") for power in powers for digit in digits]


def _shorten(word: str, length: int) -> str:
    """Without its middle, since choices often differ at the end."""
    kept = length - 1
    return word if len(word) <= length else f"{word[: kept - kept // 3]}…{word[-(kept // 3) :]}"


def _wrap(name: str, length: int = _NAME) -> str:
    """A long name, broken after its dots."""
    parts = [name] if len(name) <= length else name.replace(".", ".\n").split("\n")
    return "\n".join(_shorten(part, length) for part in parts)


def _shade(place: float, data: Parallel) -> tuple[float, ...]:
    """The darker the better, since the light end of the map is hard to see as a line."""
    return mpl.colormaps[MAP](1 - place if data.goal == "maximize" else place)


def _draw_axis(axes: Axes, axis: ParallelAxis, place: int) -> None:
    axes.vlines(place, 0, 1, color="black", linewidth=0.8, zorder=4)
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    for height, label in axis.ticks:
        axes.plot([place - 0.03, place], [height, height], color="black", linewidth=0.8, zorder=4)
        axes.text(place + 0.06, height, label, va="center", fontsize=8, bbox=behind, zorder=5)


def _say(text: str) -> Figure:
    figure = new_figure(6.0, 1.0)
    figure.text(0.5, 0.5, text, ha="center", va="center", color=GREY)
    return figure
