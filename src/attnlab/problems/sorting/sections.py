"""What only the page of a run that tells sorted lists has: right answers by length."""

from dataclasses import replace

from attnlab.analysis.statistics import percent, percent_ends
from attnlab.problems.sorting.evaluate import SortingEvaluation
from attnlab.problems.sorting.figures import draw_lengths, lengths_data, tested_data
from attnlab.problems.sorting.lengths import Lengths
from attnlab.problems.sorting.task import Sorting
from attnlab.report.page import Figure, Section, Story, figure
from attnlab.results import Table
from attnlab.runs import RunFolder


def sorting_story(task: Sorting, run: RunFolder, story: Story) -> Story:
    """``story``, told of lists."""
    found, lengths = story.evaluation, run.kept("lengths", Lengths)
    assert isinstance(found, SortingEvaluation)
    return replace(
        story.with_parts({"good": lambda: _strata(task, found, lengths)}),
        what="A transformer that classifies whether a list is sorted, trained on lists of "
        f"{task.low} to {task.high} numbers.",
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
