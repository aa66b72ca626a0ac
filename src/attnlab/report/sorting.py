"""What the report of a run that tells sorted lists shows besides its training."""

from typing import Any

from attnlab.analysis.patterns import look_at_list
from attnlab.figures import draw_lengths, draw_patterns, lengths_data, patterns_data
from attnlab.models import Classifier, attentions
from attnlab.report.figure import Figure, figure
from attnlab.spec import PAD
from attnlab.tasks import Sorting
from attnlab.tasks.lists import lengths_of
from attnlab.tasks.sorting import UNSORTED


def sorting_figures(
    task: Sorting, model: Classifier, *, seed: int, found: dict[str, Any], lengths: dict[str, Any] | None
) -> list[Figure]:
    """Right answers by length, and where heads look."""
    figures = [_lengths(task, found, lengths)]
    if attentions(model):
        figures.append(_patterns(task, model, seed))
    return figures


def _lengths(task: Sorting, found: dict[str, Any], lengths: dict[str, Any] | None) -> Figure:
    data = lengths_data(lengths or _learned_lengths(task, found))
    points = [
        (share, length, curve["negatives"])
        for curve in data["curves"]
        for length, share in zip(curve["length"], curve["percent"], strict=True)
    ]
    share, length, way = min(points)
    reading = (
        f"Learned from lists of {task.spec.low} to {task.spec.high} numbers, which is the shaded part. "
        f"The weakest point is {share:.2f}% at length {length:,}, unsorted lists by {way}. "
        "Half of the lists are sorted, so 50% is what always giving the same answer brings."
    )
    return figure("How good it is", reading, data, draw_lengths(data))


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
    trained = {"low": task.spec.low, "high": task.spec.high}
    return {"run": found.get("run"), "trained": trained, "rows": rows}


def _patterns(task: Sorting, model: Classifier, seed: int) -> Figure:
    """Every head on the shortest unsorted test list."""
    test = task.splits(seed).test
    lists = test.inputs[0][test.targets == UNSORTED]
    shortest = lists[lengths_of(lists).argmin()]
    looked = look_at_list(task, model, shortest[shortest != PAD])
    data = patterns_data(looked.patterns)
    focus = max(
        (max(row), f"{layer['attention']}.{index}")
        for layer in data["layers"]
        for index, head in enumerate(layer["heads"])
        for row in head
    )
    reading = (
        f"{looked.example}, which it calls {looked.answer}. A row is a query, a column a key, and each row "
        f"sums to one. The strongest single weight is {focus[0]:.2f}, in {focus[1]}. "
        "Where a head looks is not yet what it does."
    )
    return figure("Where its heads look", reading, data, draw_patterns(data))
