"""Pairs of sums that differ only in whether a carry arrives at a column: the two sides of an intervention.

With ``column`` c and ``reach`` r, both sums have the same digits but for column c - r, the deciding one,
which sends a carry in ``carried`` and none in ``plain``. The r - 1 columns between sum to nine, so that a
carry goes on through them. Column c itself does not sum to nine, so that the carry ends there and no digit
of the answer above c tells of it. Column ``digits``, above both operands, is tested like any other.

What a model that emits digits one by one has already been fed when it comes to column c is part of its
input. Fed its own true answer each time, it might read the carry off the digits it was fed instead of off
the operands. So by default (``digit`` is ``same``) the deciding column's digits sum to ten more in
``carried`` than in ``plain``: 8 + 9 and 4 + 3 both leave a 7. With a reach of 1 the two answers then differ
in column c only, and up to there only two tokens of the source are different. With ``any`` the deciding
column leaves whatever it leaves. Columns between say 0 with the carry and 9 without: with a longer reach, a
model that emits the ones first is told of the carry by its own answer, as it is when nobody looks.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from attnlab.errors import InputError
from attnlab.problems.addition.choices import Digit
from attnlab.problems.addition.pairs import first_of_each
from attnlab.problems.addition.task import Addition

_ROUNDS = 20
_DIGITS = torch.arange(10)


@final
@dataclass(frozen=True)
class CarryPairs:
    """Rows i of ``carried`` and ``plain`` are two sums; ``place`` is where the target has the column."""

    carried: Int[Tensor, "N 2"]
    plain: Int[Tensor, "N 2"]
    column: int
    place: int

    def __len__(self) -> int:
        return len(self.carried)

    def __getitem__(self, index: slice | Bool[Tensor, "N"] | Int[Tensor, "M"]) -> "CarryPairs":
        return CarryPairs(self.carried[index], self.plain[index], self.column, self.place)


def carry_pairs(
    task: Addition,
    *,
    column: int,
    count: int,
    generator: Generator,
    reach: int = 1,
    digit: Digit = "same",
) -> CarryPairs:
    """Up to ``count`` different pairs in random order; fewer where there are no more to be found."""
    if not 1 <= column <= task.digits:
        raise InputError(f"a carry arrives at columns 1 to {task.digits} of these sums, not at {column}")
    if not 1 <= reach <= column:
        raise InputError(
            f"reach is {reach}, but a carry into column {column} comes from 1 to {column} below"
        )
    found = torch.empty(0, 4, dtype=torch.long)
    for _ in range(_ROUNDS):
        drawn = _draw(task, column, reach, digit, count + count // 4 + 16, generator)
        found = torch.cat((found, drawn))
        found = found[first_of_each(found)]
        if len(found) >= count:
            break
    place = task.target_columns().tolist().index(column)
    return CarryPairs(found[:count, :2], found[:count, 2:], column, place)


def _draw(
    task: Addition, column: int, reach: int, digit: Digit, count: int, generator: Generator
) -> Int[Tensor, "N 4"]:
    """Rows a, b, a', b': the sum with the carry and the one without."""
    lowest = [0] * (task.digits - 1) + [0 if task.operands == "full" else 1]
    deciding = column - reach
    carried = torch.empty(count, 2, task.digits, dtype=torch.long)
    plain = torch.empty_like(carried)
    for place in range(task.digits):
        a, b = torch.cartesian_prod(_DIGITS[lowest[place] :], _DIGITS[lowest[place] :]).unbind(dim=1)
        if deciding < place < column:
            keep = a + b == 9
        elif place == column:
            keep = a + b != 9
        else:
            keep = torch.ones_like(a, dtype=torch.bool)
        columns = torch.stack((a, b), dim=1)[keep]
        carried[:, :, place] = plain[:, :, place] = _choose(columns, count, generator)
    power = 10 ** torch.arange(task.digits)
    below = (carried[:, :, :deciding] * power[:deciding]).sum(dim=(1, 2)) >= 10**deciding
    for arriving in (False, True):
        rows = below == arriving
        chosen = _choose(_decisions(lowest[deciding], int(arriving), digit), int(rows.sum()), generator)
        carried[rows, :, deciding], plain[rows, :, deciding] = chosen[:, :2], chosen[:, 2:]
    return torch.cat(((carried * power).sum(dim=2), (plain * power).sum(dim=2)), dim=1)


def _decisions(lowest: int, arriving: int, digit: Digit) -> Int[Tensor, "M 4"]:
    """Every a, b, a', b' of one column of which the first two send a carry and the last two do not."""
    every = torch.cartesian_prod(*[_DIGITS[lowest:]] * 4)
    carried, plain = (every[:, side : side + 2].sum(dim=1) + arriving for side in (0, 2))
    keep = (carried >= 10) & (plain < 10)
    return every[keep & (carried - plain == 10)] if digit == "same" else every[keep]


def _choose(rows: Int[Tensor, "M C"], count: int, generator: Generator) -> Int[Tensor, "N C"]:
    return rows[torch.randint(len(rows), (count,), generator=generator)]
