"""The runs in a folder."""

from collections.abc import Iterator

from attnlab.analysis import percent
from attnlab.errors import brief
from attnlab.results import Part, Table
from attnlab.runs.listing import DamagedRun, ListedRun, RunList

COLUMNS = ("run", "task", "seed", "epochs", "validation exact", "verified", "status")


def tables(found: RunList) -> Iterator[Part]:
    if found.runs:
        yield Table(found.folder, COLUMNS, tuple(map(_cells, found.runs)))
    else:
        yield f"there are no runs in {brief(found.folder)} yet"


def _of(correct: int, total: int) -> str:
    return f"all {total:,}" if correct == total else f"{correct:,} of {total:,}"


def _cells(row: ListedRun | DamagedRun) -> tuple[str, ...]:
    if isinstance(row, DamagedRun):
        return (row.run, "-", "-", "-", "-", "-", row.status)
    exact, correct = row.valid_exact_match, row.correct
    return (
        row.run,
        row.task,
        str(row.seed),
        f"{row.epochs} of {row.planned_epochs}",
        "-" if exact is None else percent(exact),
        "-" if correct is None else _of(correct, row.total or 0),
        row.status,
    )
