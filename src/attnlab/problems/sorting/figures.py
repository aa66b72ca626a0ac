"""Right answers by the length of a list."""

from typing import Any

from matplotlib.figure import Figure

from attnlab.figures.style import GREY, MARKED, new_figure, styled
from attnlab.problems.sorting.evaluate import SortingEvaluation
from attnlab.problems.sorting.lengths import LengthRow, Lengths
from attnlab.problems.sorting.task import Sorting


def lengths_data(found: Lengths) -> dict[str, Any]:
    """A curve for each way to put lists out of order; shares in percent."""
    ways = dict.fromkeys(row.negatives for row in found.rows)
    return {
        "run": found.run,
        "trained": [found.trained.low, found.trained.high],
        "curves": [_curve(way, [row for row in found.rows if row.negatives == way]) for way in ways],
    }


def tested_data(task: Sorting, found: SortingEvaluation) -> dict[str, Any]:
    """The same of the lengths of the test lists."""
    curve = {
        "negatives": found.negatives,
        "length": [row.length for row in found.by_length],
        "percent": [100 * row.exact_match for row in found.by_length],
        "interval": [[100 * end for end in row.exact_match_interval] for row in found.by_length],
        "constant": [None] * len(found.by_length),
    }
    return {"run": found.run, "trained": [task.low, task.high], "curves": [curve]}


def _curve(way: str, rows: list[LengthRow]) -> dict[str, Any]:
    return {
        "negatives": way,
        "length": [row.length for row in rows],
        "percent": [100 * row.accuracy for row in rows],
        "interval": [[100 * end for end in row.accuracy_interval] for row in rows],
        "constant": [row.constant for row in rows],
    }


def draw_lengths(data: dict[str, Any]) -> Figure:
    """Curves with their 95% intervals; the lengths of training are shaded, constant predictors hollow.

    All but the first are dashed, so that one shows through another that runs along it.
    """
    figure = new_figure(9.0, 3.6)
    first, last = data["trained"]
    with styled():
        axes = figure.subplots()
        axes.axvspan(first, max(last, first * 1.05), color=GREY, alpha=0.2, linewidth=0)
        axes.axhline(50, color=GREY, linewidth=0.8, linestyle=":")
        for place, curve in enumerate(data["curves"]):
            colour, marker = MARKED[place % len(MARKED)]
            low, high = zip(*curve["interval"], strict=True)
            axes.fill_between(curve["length"], low, high, color=colour, alpha=0.15, linewidth=0)
            line = f"{marker}-" if place == 0 else f"{marker}--"
            axes.plot(curve["length"], curve["percent"], line, color=colour, label=curve["negatives"])
            same = [point for point, answer in enumerate(curve["constant"]) if answer]
            points = [[curve[axis][point] for point in same] for axis in ("length", "percent")]
            axes.plot(*points, marker, color=colour, markerfacecolor="white")
        every = sorted({length for curve in data["curves"] for length in curve["length"]})
        axes.set_xscale("log", base=2)
        axes.set_xticks(every, [f"{length:,}" for length in every])
        axes.minorticks_off()
        lowest = min(low for curve in data["curves"] for low, _ in curve["interval"])
        axes.set(ylim=(min(40, lowest) - 2, 103), xlabel="length of the list", ylabel="% right")
        axes.set_title("Right answers by length (shaded: of training; hollow: always the same answer)")
        axes.legend(title="unsorted lists by", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
