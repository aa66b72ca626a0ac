"""How well a model adds numbers of lengths that it has and has not learned from.

At each length and for each set of sums, the same sums for every model: ``uniform`` ones, in which a carry
seldom goes far, and ``full-carry`` ones, in which every column sends one. A sum is right if greedy decoding
says every digit and then the end. Where it is not, two shares say what broke: of digits that are right, and
of answers that end in the right place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.evaluate import proportion
from attnlab.analysis.lengths import merged, read_lengths
from attnlab.analysis.parallel import in_order
from attnlab.analysis.predict import answer
from attnlab.devices import device_of
from attnlab.errors import InputError, brief, nearest
from attnlab.model import Model
from attnlab.problems.addition.draws import carrying_sums
from attnlab.problems.addition.task import END, Addition
from attnlab.problems.addition.words import CARRYING, LENGTHS, LONGEST, SUMS, Carrying
from attnlab.progress import Progress, silent
from attnlab.results import Interval, Result, Row, plain_fields
from attnlab.runs import RunFolder
from attnlab.sets import Examples

_TOKENS = 2**17  # of the sources of one batch


@dataclass(frozen=True)
class LengthRow:
    """Sums of one length and set; ``ended`` is the share of answers that end where they should."""

    sums: str
    seed: int
    length: int
    examples: int
    exact_match: float
    exact_match_interval: Interval
    digits: float
    ended: float


@dataclass(frozen=True, kw_only=True)
class AdditionLengths(Result):
    """Rows set by set and length by length; ``trained`` are the lengths of training."""

    shown_by: ClassVar[str] = "attnlab.problems.addition.tables_of_lengths"

    run: str
    trained: tuple[int, int]
    rows: list[LengthRow]

    def records(self) -> list[Row]:
        """A row for each set and length."""
        return [plain_fields(row) for row in self.rows]


def lengths_run(
    task: Addition,
    run: RunFolder,
    *,
    lengths: str = LENGTHS,
    sums: str | Sequence[str] = CARRYING,
    examples: int = SUMS,
    seed: int = 0,
    keep: str = "lengths",
    progress: Progress = silent,
) -> AdditionLengths:
    """Measure a run at each of the ``lengths``, such as 10,20,50,100, and keep it under ``keep``.

    ``sums`` are uniform, full-carry or both; ``examples`` how many there are of each at each length. What
    is kept already stays, but for lengths and sets that are measured again.
    """
    if examples < 1:
        raise InputError(f"examples is {examples}; it must be at least 1")
    sets = [_known(name) for name in (sums.split(",") if isinstance(sums, str) else sums)]
    wanted = read_lengths(lengths, check_length, LENGTHS)
    total, done, rows = len(sets) * sum(wanted), 0, list[LengthRow]()
    for name in sets:
        for length in wanted:
            rows.append(measure_length(task, run.model, length, name, examples, seed=seed))
            done += length
            progress(done, total)
    found = AdditionLengths(run=run.name, trained=task.lengths, rows=rows)
    earlier = run.kept(keep, AdditionLengths)
    every = merged([] if earlier is None else earlier.rows, rows, lambda row: (row.sums, row.length))
    run.keep(keep, replace(found, rows=every))
    return found


def check_length(length: int) -> None:
    """Refuse operands that are too short or too long."""
    if not 1 <= length <= LONGEST:
        raise InputError(
            f"an operand of {length:,} digits is outside 1 to {LONGEST}, the lengths of this task"
        )


def measure_length(
    task: Addition, model: Model, length: int, sums: Carrying, examples: int, *, seed: int = 0
) -> LengthRow:
    """Exact match at one length, and what is right of sums that are not."""

    def said(part: Examples) -> tuple[Tensor, Tensor]:
        return part.targets, answer(task, model, part)

    parts = _batches(carrying_sums(task, examples, length, sums, seed), max(1, _TOKENS // (2 * length + 1)))
    truth, given = map(torch.cat, zip(*in_order(said, parts, device=device_of(model)), strict=True))
    right = truth == given
    return LengthRow(
        sums,
        seed,
        length,
        *proportion(right.all(dim=1)),
        digits=right[:, :-1].double().mean().item(),
        ended=(_ends(given) == length + 1).double().mean().item(),
    )


def _ends(tokens: Int[Tensor, "N T"]) -> Int[Tensor, "N"]:
    """The place of the first end; of answers without one the number of their tokens."""
    ends = tokens == END
    return ends.long().argmax(dim=1).where(ends.any(dim=1), tokens.shape[1])


def _batches(examples: Examples, count: int) -> Iterator[Examples]:
    for start in range(0, len(examples), count):
        yield examples[slice(start, start + count)]


def _known(name: str) -> Carrying:
    for each in CARRYING:
        if name.strip() == each:
            return each
    raise InputError(f"sums is {brief(name)}, which is unknown{nearest(name, CARRYING)}")
