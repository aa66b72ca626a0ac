"""Accuracy over the learning rate: a curve for each way to start the positions, a dot for each seed."""

from collections.abc import Iterable
from typing import Any

from matplotlib.figure import Figure

from attnlab.figures.style import GREY, MARKED, new_figure, styled
from attnlab.studies.outcome import StudyResult


def rates_data(result: StudyResult, *, measure: str = "accuracy") -> dict[str, Any]:
    """By width, curves of means in percent over learning rates, with every seed; epochs must be alike.

    A seed without a value diverged; it is counted.
    """
    panels: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for variant in result.variants:
        size, start, rate, *more = variant.name.split(", ")
        if more:
            continue
        found = variant.measures[measure]
        point = {
            "lr": float(rate.removeprefix("lr ")),
            "mean": None if found.mean is None else 100 * found.mean,
            "values": [100 * value for value in found.known],
            "diverged": found.values.count(None),
        }
        panels.setdefault(size, {}).setdefault(start, []).append(point)
    return {
        "panels": [
            {
                "size": size,
                "curves": [
                    {"start": start, "points": sorted(points, key=lambda point: point["lr"])}
                    for start, points in curves.items()
                ],
            }
            for size, curves in panels.items()
        ]
    }


def draw_rates(data: dict[str, Any]) -> Figure:
    """A panel for each width."""
    panels = data["panels"]
    figure = new_figure(5.2 * len(panels), 4.2)
    with styled():
        grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        names = list(dict.fromkeys(curve["start"] for panel in panels for curve in panel["curves"]))
        for axes, panel in zip(grid, panels, strict=True):
            for curve in panel["curves"]:
                colour, marker = MARKED[names.index(curve["start"]) % len(MARKED)]
                known = [point for point in curve["points"] if point["mean"] is not None]
                axes.plot(
                    [point["lr"] for point in known],
                    [point["mean"] for point in known],
                    color=colour, linewidth=1.6, marker=marker, markersize=4, label=curve["start"],
                )  # fmt: skip
                for point in known:
                    axes.plot(
                        [point["lr"]] * len(point["values"]), point["values"],
                        marker=marker, color=colour, linestyle="none", markersize=4, alpha=0.65,
                    )  # fmt: skip
            axes.set_xscale("log")
            axes.set(ylim=(0, 102), xlabel="learning rate")
            axes.set_title(f"width/hidden {panel['size']}")
            axes.axhline(10, color=GREY, linewidth=0.6, linestyle=":")
            axes.legend(loc="upper left", fontsize=8)
            _mark_divergence(axes, panel["curves"])
        grid[0].set_ylabel("test accuracy, %")
    return figure


def _mark_divergence(axes: Any, curves: Iterable[dict[str, Any]]) -> None:
    """How many runs diverged at each learning rate, along the bottom."""
    lost: dict[float, int] = {}
    for curve in curves:
        for point in curve["points"]:
            lost[point["lr"]] = lost.get(point["lr"], 0) + point["diverged"]
    for lr, count in lost.items():
        if count:
            axes.text(lr, 2, f"{count} diverged", ha="center", fontsize=7, color=GREY)
