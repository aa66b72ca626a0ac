"""The page of a run that tells sorted lists."""

from collections.abc import Callable
from typing import Any

from attnlab.analysis import evaluate_sorting, percent
from attnlab.analysis.ablate import head_names
from attnlab.analysis.explain.asking import LONGEST
from attnlab.analysis.patterns import look_at
from attnlab.analysis.slips import slips_of
from attnlab.figures import draw_lengths, lengths_data
from attnlab.models import Classifier, attentions
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.lists import lengths_of
from attnlab.problems.sorting.words import PAD, UNSORTED
from attnlab.report.common import heads_section, training_section
from attnlab.report.figure import Figure, figure
from attnlab.report.page import Section
from attnlab.report.reasons import reasons_section
from attnlab.report.story import Story
from attnlab.report.text import mistakes_section, pattern_figure
from attnlab.runs import Run, load_sorting
from attnlab.studies.tables import Table

CELLS = 8_000
"""Weights, over all heads, that the maps of one list may have; each takes about 260 bytes of the page."""


def sorting_story(run: Run, samples: int) -> Story:
    """What is told of a run that tells sorted lists."""
    task, model = load_sorting(run)
    seed = run.spec().seed
    found = run.analysis("evaluate-test") or evaluate_sorting(task, model, seed=seed)
    lengths = run.analysis("lengths")
    parts: dict[str, Callable[[], Section | None]] = {
        "trained": lambda: training_section(run),
        "good": lambda: _strata(task, found, lengths),
    }
    if attentions(model):
        example = _example(task, seed)
        length = len(task.numbers(example))
        parts["heads"] = lambda: heads_section(run, samples)
        if length**2 * len(head_names(model)) <= CELLS:
            parts["maps"] = lambda: _maps(task, model, example)
        if length <= LONGEST:
            parts["reasons"] = lambda: reasons_section(run, example)
    parts["mistakes"] = lambda: mistakes_section(
        slips_of(task, model, task.splits(seed).test), "test lists"
    )
    return Story(
        f"A transformer that tells sorted lists, learned from lists of {task.low} to {task.high} numbers.",
        f"{percent(found['exact_match'])} of {found['examples']:,} test lists right.",
        found["exact_match"] == 1,
        notes(found, lengths, shipped=run.shipped),
        [(f"{found['loss']:.3g}", "test loss")],
        parts,
    )


def notes(found: dict[str, Any], lengths: dict[str, Any] | None, *, shipped: bool) -> list[str]:
    """How sure the share is, and what other lengths say; a shipped run keeps no measurement of them."""
    low, high = found["exact_match_interval"]
    told = (
        f"95% interval {percent(low)} to {percent(high)}; half of the lists are sorted, the others were "
        f"put out of order by {found['negatives']}."
    )
    if lengths is not None:
        return [told, *(f"{sentence}." for sentence in lengths["constant"])]
    offer = "attnlab lengths measures lengths that were never learned from; write this page again after it."
    return [told] if shipped else [told, offer]


def _strata(task: Sorting, found: dict[str, Any], lengths: dict[str, Any] | None) -> Section:
    tables = [] if lengths is None else [_by_length(lengths)]
    return Section("good", "How good it is", figures=[_lengths(task, found, lengths)], tables=tables)


def _by_length(lengths: dict[str, Any]) -> Table:
    rows = tuple(
        (
            row["negatives"],
            f"{row['length']:,}",
            f"{row['examples']:,}",
            percent(row["accuracy"]),
            percent(row["answers"]["sorted"]),
        )
        for row in lengths["rows"]
    )
    return Table("By length", ("unsorted by", "length", "lists", "right", "says sorted"), rows)


def _lengths(task: Sorting, found: dict[str, Any], lengths: dict[str, Any] | None) -> Figure:
    data = lengths_data(lengths or _learned_lengths(task, found))
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
    return figure("lengths", "By length", data, draw_lengths(data), reading=reading, signs=signs)


def _learned_lengths(task: Sorting, found: dict[str, Any]) -> dict[str, Any]:
    """The test lists by length, as ``lengths_run`` would tell it."""
    rows = [
        {
            "negatives": found["negatives"],
            "length": row["length"],
            "accuracy": row["exact_match"],
            "accuracy_interval": row["exact_match_interval"],
            "constant": None,
        }
        for row in found["by_length"]
    ]
    trained = {"low": task.low, "high": task.high}
    return {"run": found.get("run"), "trained": trained, "rows": rows}


def _example(task: Sorting, seed: int) -> str:
    """The shortest unsorted test list."""
    test = task.splits(seed).test
    lists = test.inputs[0][test.targets == UNSORTED]
    shortest = lists[lengths_of(lists).argmin()]
    return " ".join(map(str, shortest[shortest != PAD].tolist()))


def _maps(task: Sorting, model: Classifier, example: str) -> Section:
    looked = look_at(task, model, task.parse(example))
    about = f"{looked.example}, which it calls {looked.answer}."
    return Section(
        "maps",
        "Where its heads look in one list",
        figures=[pattern_figure("patterns", "Every head", about, looked.patterns)],
    )
