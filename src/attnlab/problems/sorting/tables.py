"""What ``lengths`` finds: a table for each way to put lists out of order, and who always says the same."""

from collections.abc import Iterator

from attnlab.analysis.statistics import percent, percent_ends
from attnlab.problems.sorting.figures import draw_lengths, lengths_data
from attnlab.problems.sorting.lengths import LengthRow, Lengths, Trained
from attnlab.results import Drawing, Part, Table

COLUMNS = ("length", "lists", "accuracy", "95% interval", "balanced", "says sorted", "says unsorted", "")


def tables(found: Lengths) -> Iterator[Part]:
    trained = found.trained
    for way in dict.fromkeys(row.negatives for row in found.rows):
        yield Table(
            f"{found.run}, trained on {trained.low} to {trained.high} ({trained.negatives}); "
            f"unsorted lists by {way}",
            COLUMNS,
            tuple(_cells(row, trained) for row in found.rows if row.negatives == way),
        )
    yield from found.constant


def figures(found: Lengths) -> dict[str, Drawing]:
    return {"lengths": Drawing(lengths_data(found), draw_lengths)}


def _cells(row: LengthRow, trained: Trained) -> tuple[str, ...]:
    seen = trained.low <= row.length <= trained.high
    return (
        f"{row.length:,}",
        f"{row.examples:,}",
        percent(row.accuracy),
        percent_ends(row.accuracy_interval),
        percent(row.balanced_accuracy),
        percent(row.answers["sorted"]),
        percent(row.answers["unsorted"]),
        f"constant: {row.constant}" if row.constant else "trained" if seen else "",
    )
