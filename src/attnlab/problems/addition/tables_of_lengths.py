"""What ``lengths`` finds of sums: a table for each set, and both as curves."""

from collections.abc import Iterator

from attnlab.analysis.statistics import percent, percent_ends
from attnlab.problems.addition.figures import draw_lengths, lengths_data
from attnlab.problems.addition.lengths import AdditionLengths, LengthRow
from attnlab.results import Drawing, Part, Table

COLUMNS = ("digits", "sums", "right", "95% interval", "digits right", "ends right", "")


def tables(found: AdditionLengths) -> Iterator[Part]:
    low, high = found.trained
    for name in dict.fromkeys(row.sums for row in found.rows):
        yield Table(
            f"{found.run}, trained on {low} to {high} digits; {name} sums",
            COLUMNS,
            tuple(_cells(row, found.trained) for row in found.rows if row.sums == name),
        )


def figures(found: AdditionLengths) -> dict[str, Drawing]:
    return {"lengths": Drawing(lengths_data(found), draw_lengths)}


def _cells(row: LengthRow, trained: tuple[int, int]) -> tuple[str, ...]:
    return (
        str(row.length),
        f"{row.examples:,}",
        percent(row.exact_match),
        percent_ends(row.exact_match_interval),
        percent(row.digits),
        percent(row.ended),
        "trained" if trained[0] <= row.length <= trained[1] else "",
    )
