"""Drawing distinct pairs of operands.

A uniform sample of all pairs almost never holds a sum of tiny operands (0 + 0) or a carry that ripples
through every column (105 + 895), and a model trained on it fails just there. ``balanced`` sampling

- makes each column sum to nine with probability ``NINE``: a carry that comes in goes on,
- gives it the same digit twice with probability ``DOUBLE``: such columns were what was left to go wrong,
- cuts both operands of a share ``SHORT`` of all pairs to their last 0 to ``digits`` digits.
"""

from typing import Literal

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from attnlab.problems.addition.task import Addition

NINE, DOUBLE, SHORT = 0.15, 0.15, 0.15

_ROUNDS = 20


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
