"""Drawing distinct pairs of operands, and pairs of sums with and without a carry.

A uniform sample of all pairs almost never holds a sum of tiny operands (0 + 0) or a carry that ripples
through every column (105 + 895), and a model trained on it fails just there. ``balanced`` sampling

- makes each column sum to nine with probability ``NINE``: a carry that comes in goes on,
- gives it the same digit twice with probability ``DOUBLE``: such columns were what was left to go wrong,
- cuts both operands of a share ``SHORT`` of all pairs to their last 0 to ``digits`` digits.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Generator, Tensor

from attnlab.errors import InputError
from attnlab.problems.addition.task import Addition, Digit
from attnlab.sets import Pairs

NINE, DOUBLE, SHORT = 0.15, 0.15, 0.15

_ROUNDS = 20
_DIGITS = torch.arange(10)


def distinct_pairs(
    task: Addition,
    count: int,
    generator: Generator,
    *,
    sampling: Literal["uniform", "balanced"],
    taken: Int[Tensor, "M 2"] | None = None,
) -> Int[Tensor, "N 2"]:
    """``count`` pairs in random order, no two the same as unordered pairs, none of them ``taken``."""
    low, high = task.operand_range
    found = torch.empty(0, 2, dtype=torch.long) if taken is None else taken
    want = len(found) + count
    for _ in range(_ROUNDS):
        drawn = _draw(task, count + count // 4 + 16, generator, sampling)
        found = _unique(torch.cat((found, drawn)))
        if len(found) >= want:
            return found[want - count : want]
    # Drawing at random no longer finds new pairs, so the space is small: shuffle all of it.
    every = torch.combinations(torch.arange(low, high + 1), with_replacement=True)
    shuffled = every[torch.randperm(len(every), generator=generator)]
    return _unique(torch.cat((found, shuffled)))[want - count : want]


def first_of_each(rows: Int[Tensor, "N C"]) -> Int[Tensor, "M"]:
    """Where each different row stands for the first time, in order."""
    _, group = torch.unique(rows, dim=0, return_inverse=True)
    first = torch.full((int(group.max()) + 1,), len(rows)).scatter_reduce(
        0, group, torch.arange(len(rows)), reduce="amin"
    )
    return first.sort().values


def _unique(pairs: Int[Tensor, "N 2"]) -> Int[Tensor, "M 2"]:
    """First occurrences, as unordered pairs, in their order."""
    return pairs[first_of_each(pairs.sort(dim=1).values)]


def _draw(task: Addition, count: int, generator: Generator, sampling: str) -> Int[Tensor, "N 2"]:
    low, high = task.operand_range
    uniform = torch.randint(low, high + 1, (count, 2), generator=generator)
    if sampling == "uniform":
        return uniform
    pairs = _balance_columns(task, uniform, generator)
    kept_digits = torch.randint(0, task.digits + 1, (count, 2), generator=generator)
    cut = torch.rand(count, 1, generator=generator) < SHORT
    pairs = torch.where(cut, pairs % 10**kept_digits, pairs)
    return torch.where(pairs < low, uniform, pairs)  # operands too short for the range stay uniform


def _balance_columns(task: Addition, pairs: Int[Tensor, "N 2"], generator: Generator) -> Int[Tensor, "N 2"]:
    """Make some columns of the second operand nine less the first one's digit, or that same digit."""
    power = 10 ** torch.arange(task.digits)
    a, b = (pairs[:, side, None] // power % 10 for side in (0, 1))  # (N, digits) each
    kind = torch.rand(a.shape, generator=generator)
    b = torch.where(kind < NINE, 9 - a, torch.where(kind < NINE + DOUBLE, a, b))
    return torch.stack((pairs[:, 0], (b * power).sum(dim=1)), dim=1)


def carry_pairs(
    task: Addition,
    *,
    column: int,
    count: int,
    generator: Generator,
    reach: int = 1,
    digit: Digit = "same",
) -> Pairs:
    """Up to ``count`` different pairs in random order; fewer where there are no more to be found.
    The base is the sum without a carry, the donor the one with it.

    With ``column`` c and ``reach`` r, both sums have the same digits but for column c - r, the deciding
    one, which sends a carry in the donor and none in the base. The r - 1 columns between sum to
    nine, so that a carry goes on through them. Column c itself does not sum to nine, so that the carry
    ends there and no digit of the answer above c tells of it. Column ``digits``, above both operands,
    is tested like any other.

    What a model that emits digits one by one has been fed when it comes to column c is part of its
    input, so it might read the carry off those digits instead of off the operands. So by default
    (``digit`` is ``same``) the deciding column's digits sum to ten more in the donor than in the
    base: 8 + 9 and 4 + 3 both leave a 7. With a reach of 1 the two answers then differ in column c
    only. With ``any`` the deciding column leaves whatever it leaves. Columns between say 0 with the
    carry and 9 without: with a longer reach, a model that emits the ones first is told of the carry by
    its own answer.
    """
    if not 1 <= column <= task.digits:
        raise InputError(f"a carry arrives at columns 1 to {task.digits} of these sums, not at {column}")
    if not 1 <= reach <= column:
        raise InputError(
            f"reach is {reach}, but a carry into column {column} comes from 1 to {column} below"
        )
    found = torch.empty(0, 4, task.digits, dtype=torch.long)
    for _ in range(_ROUNDS):
        drawn = _draw_carries(task, column, reach, digit, count + count // 4 + 16, generator)
        found = torch.cat((found, drawn))
        found = found[first_of_each(found.flatten(1))]
        if len(found) >= count:
            break
    carried, plain = (task.examples(found[:count, side : side + 2]) for side in (0, 2))
    place = task.target_columns().tolist().index(column)
    return Pairs(plain, carried, task.places()[place], place, _source_labels(task), column)


def _source_labels(task: Addition) -> list[str]:
    """Positions of the source by operand and column."""
    columns = [f"10^{column}" for column in task.source_columns()[: task.digits].tolist()]
    return [*(f"a {column}" for column in columns), "+", *(f"b {column}" for column in columns)]


def _draw_carries(
    task: Addition, column: int, reach: int, digit: Digit, count: int, generator: Generator
) -> Int[Tensor, "N 4 C"]:
    """Rows a, b, a', b', each by digit: the sum with the carry and the one without."""
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
    below = F.pad(task.carries(carried), (1, 0))[:, deciding]
    for arriving in (False, True):
        rows = below == arriving
        chosen = _choose(_decisions(lowest[deciding], int(arriving), digit), int(rows.sum()), generator)
        carried[rows, :, deciding], plain[rows, :, deciding] = chosen[:, :2], chosen[:, 2:]
    return torch.cat((carried, plain), dim=1)


def _decisions(lowest: int, arriving: int, digit: Digit) -> Int[Tensor, "M 4"]:
    """Every a, b, a', b' of one column of which the first two send a carry and the last two do not."""
    every = torch.cartesian_prod(*[_DIGITS[lowest:]] * 4)
    carried, plain = (every[:, side : side + 2].sum(dim=1) + arriving for side in (0, 2))
    keep = (carried >= 10) & (plain < 10)
    return every[keep & (carried - plain == 10)] if digit == "same" else every[keep]


def _choose(rows: Int[Tensor, "M C"], count: int, generator: Generator) -> Int[Tensor, "N C"]:
    return rows[torch.randint(len(rows), (count,), generator=generator)]
