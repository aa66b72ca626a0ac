"""What only the page of a run that tells sorted lists has: right answers by length."""

from dataclasses import replace
from typing import Any

import matplotlib.figure

from attnlab.analysis.statistics import percent, percent_ends
from attnlab.figures.style import GREY, MARKED, new_figure, styled
from attnlab.problems.sorting.evaluate import SortingEvaluation
from attnlab.problems.sorting.lengths import LengthRow, Lengths
from attnlab.problems.sorting.task import Sorting
from attnlab.report.page import Figure, Section, Story, figure
from attnlab.results import Table
from attnlab.runs import RunFolder


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


def draw_lengths(data: dict[str, Any]) -> matplotlib.figure.Figure:
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


def sorting_story(task: Sorting, run: RunFolder, story: Story) -> Story:
    """``story``, told of lists."""
    found, lengths = story.evaluation, run.kept("lengths", Lengths)
    assert isinstance(found, SortingEvaluation)
    return replace(
        story.with_parts({"good": lambda: _strata(task, found, lengths)}),
        what=f"A transformer that tells sorted lists, learned from lists of {task.low} to {task.high} "
        "numbers.",
        proof=f"{percent(found.exact_match)} of {found.examples:,} test lists right.",
        notes=notes(found, lengths, shipped=run.shipped),
    )


def notes(found: SortingEvaluation, lengths: Lengths | None, *, shipped: bool) -> list[str]:
    """How sure the share is, and what other lengths say; a shipped run keeps no measurement of them."""
    told = (
        f"95% interval {percent_ends(found.exact_match_interval)}; half of the lists are sorted, the "
        f"others were put out of order by {found.negatives}."
    )
    if lengths is not None:
        return [told, *(f"{sentence}." for sentence in lengths.constant)]
    offer = "attnlab lengths measures lengths that were never learned from; write this page again after it."
    return [told] if shipped else [told, offer]


def _strata(task: Sorting, found: SortingEvaluation, lengths: Lengths | None) -> Section:
    figures = [_lengths(task, found, lengths)]
    if lengths is None:
        return Section("good", "How good it is", figures=figures)
    names = ("unsorted by", "length", "lists", "right", "says sorted")
    rows = tuple(
        (
            row.negatives,
            f"{row.length:,}",
            f"{row.examples:,}",
            percent(row.accuracy),
            percent(row.answers["sorted"]),
        )
        for row in lengths.rows
    )
    return Section("good", "How good it is", figures=figures, tables=[Table("By length", names, rows)])


def _lengths(task: Sorting, found: SortingEvaluation, lengths: Lengths | None) -> Figure:
    data = tested_data(task, found) if lengths is None else lengths_data(lengths)
    points = [
        (share, length, curve["negatives"])
        for curve in data["curves"]
        for length, share in zip(curve["length"], curve["percent"], strict=True)
    ]
    share, length, way = min(points)
    weakest = f"the weakest point is {share:.2f}% at length {length:,}, unsorted lists by {way}"
    here = "every list that was tried is right, at every length" if share == 100 else weakest
    longest = max(each[1] for each in points)
    reading = (
        "Right answers over the length of a list, for each way to put lists out of order; the shaded "
        f"lengths, {task.low} to {task.high}, were learned from, and the longest here has "
        f"{longest:,} numbers."
    )
    signs = (
        "Good: a line that stays high far to the right of the shade. Bad: a fall to 50%, which always "
        f"giving the same answer brings, since half of the lists are sorted. Here {here}."
    )
    return figure("lengths", "By length", data, draw_lengths, reading, signs)
