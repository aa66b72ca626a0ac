"""A sweep in three figures: how its trials went, which parameters they had, and which of those mattered.

A trial is ``{"number", "state", "value", "parameters"}``; only finished ones can be best. Parallel
coordinates are Inselberg's (1985): an axis for each parameter, a line for each trial.
"""

from itertools import accumulate
from typing import Any, Literal, TypeAlias

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlab.figures.style import BLUE, GREY, ORANGE, new_figure, styled

Goal: TypeAlias = Literal["maximize", "minimize"]
Scale: TypeAlias = Literal["linear", "log", "choice"]
Trial: TypeAlias = dict[str, Any]

_WORD = 14  # letters of a choice beside its axis
_STEPS = 64  # of colour on the axis of the values


def history_data(trials: list[Trial], *, goal: Goal, metric: str) -> dict[str, Any]:
    """Numbers and values of finished and pruned trials, and the best of the finished so far."""
    ordered = sorted(trials, key=lambda trial: trial["number"])
    finished, pruned = (
        [trial for trial in ordered if trial["state"] == state and _has_value(trial)]
        for state in ("finished", "pruned")
    )
    ended = [trial for trial in ordered if trial["state"] in ("finished", "pruned", "failed")]
    values = [trial["value"] for trial in finished]
    return {
        "metric": metric,
        "goal": goal,
        "finished": {"number": _numbers(finished), "value": values},
        "pruned": {"number": _numbers(pruned), "value": [trial["value"] for trial in pruned]},
        "without": [t["number"] for t in ended if t["state"] == "failed" or not _has_value(t)],
        "best": list(accumulate(values, max if goal == "maximize" else min)),
        "scale": _value_scale(values, goal),
        "last": ordered[-1]["number"] if ordered else None,
    }


def draw_history(data: dict[str, Any]) -> Figure:
    """Dots are finished trials, hollow triangles pruned ones where they stopped, crosses below have no value."""
    figure = new_figure(9.0, 3.2)
    finished, pruned = data["finished"], data["pruned"]
    with styled():
        if not finished["number"]:
            return _say(figure, "no finished trial")
        axes = figure.subplots()
        axes.step(
            [*finished["number"], data["last"]], [*data["best"], data["best"][-1]],
            where="post", color=ORANGE, label="best so far",
        )  # fmt: skip
        axes.plot(finished["number"], finished["value"], "o", color=BLUE, markersize=5, label="finished")
        if pruned["number"]:
            axes.plot(*pruned.values(), "v", color=GREY, fillstyle="none", markersize=6, label="pruned")
        if data["without"]:
            below = {"transform": axes.get_xaxis_transform(), "clip_on": False}
            axes.plot(data["without"], [0] * len(data["without"]), "x", color=GREY, label="no value", **below)
        axes.set(xlabel="trial", ylabel=_ylabel(data), yscale=data["scale"])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(loc="outside upper right", ncols=4)
    return figure


def parallel_data(
    trials: list[Trial], *, scales: dict[str, Scale], goal: Goal, metric: str
) -> dict[str, Any]:
    """Axes and, for each finished trial, its place from 0 to 1 on every one; the last axis is the value.

    A parameter that is the same in all trials is left out; where a trial lacks one, its place is ``None``.
    Words are shortened in their middle, since choices often differ at the end.
    """
    finished = sorted((t for t in trials if t["state"] == "finished" and _has_value(t)), key=_number)
    values = [trial["value"] for trial in finished]
    names = list(dict.fromkeys(name for trial in finished for name in trial["parameters"]))
    found = {name: [trial["parameters"].get(name) for trial in finished] for name in names}
    varied = {name: column for name, column in found.items() if len({str(x) for x in column}) > 1}
    axes = [_axis(name, column, scales.get(name, "linear")) for name, column in varied.items()]
    return {
        "metric": metric,
        "goal": goal,
        "numbers": [trial["number"] for trial in finished],
        "best": values.index(max(values) if goal == "maximize" else min(values)) if values else None,
        "left_out": [name for name in names if name not in varied],
        "axes": [*axes, _axis(metric, values, _value_scale(values, goal))] if values else [],
    }
