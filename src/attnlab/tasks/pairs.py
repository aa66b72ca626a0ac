"""Drawing distinct pairs of operands.

A uniform sample of all pairs almost never holds a sum of tiny operands (0 + 0) or a carry that ripples
through every column (105 + 995), and a model trained on it fails just there. ``balanced`` sampling mixes

- half: both operands uniform over the range,
- a fifth: the number of digits of each operand is uniform first, then the operand,
- the rest: each column sums to nine with probability 1/2, so that a carry passes through it.
"""

from typing import Literal

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from attnlab.errors import SpecError
from attnlab.spec import AdditionTask

_ROUNDS = 20


def operand_range(spec: AdditionTask) -> tuple[int, int]:
    """Smallest and largest operand."""
    low = 0 if spec.operands == "full" else 10 ** (spec.digits - 1)
    return low, 10**spec.digits - 1


def distinct_pairs(
    spec: AdditionTask,
    count: int,
    generator: Generator,
    *,
    sampling: Literal["uniform", "balanced"],
    taken: Int[Tensor, "M 2"] | None = None,
) -> Int[Tensor, "N 2"]:
    """``count`` pairs in random order, no two the same as unordered pairs, none of them ``taken``."""
    low, high = operand_range(spec)
    found = torch.empty(0, 2, dtype=torch.long) if taken is None else taken
    want = len(found) + count
    available = (high - low + 1) * (high - low + 2) // 2
    if want > available:
        raise SpecError(
            f"task asks for {want:,} distinct pairs, but {spec.digits}-digit operands from "
            f"{low} to {high} have only {available:,}; ask for fewer or for more digits"
        )
    for _ in range(_ROUNDS):
        drawn = _draw(spec, count + count // 4 + 16, generator, sampling)
        found = _unique(torch.cat((found, drawn)))
        if len(found) >= want:
            return found[want - count : want]
    # Drawing at random no longer finds new pairs, so the space is small: shuffle all of it.
    every = torch.combinations(torch.arange(low, high + 1), with_replacement=True)
    shuffled = every[torch.randperm(len(every), generator=generator)]
    return _unique(torch.cat((found, shuffled)))[want - count : want]


def _unique(pairs: Int[Tensor, "N 2"]) -> Int[Tensor, "M 2"]:
    """First occurrences, as unordered pairs, in their order."""
    _, group = torch.unique(pairs.sort(dim=1).values, dim=0, return_inverse=True)
    first = torch.full((int(group.max()) + 1,), len(pairs)).scatter_reduce(
        0, group, torch.arange(len(pairs)), reduce="amin"
    )
    return pairs[first.sort().values]


def _draw(spec: AdditionTask, count: int, generator: Generator, sampling: str) -> Int[Tensor, "N 2"]:
    low, high = operand_range(spec)
    uniform = torch.randint(low, high + 1, (count, 2), generator=generator)
    if sampling == "uniform":
        return uniform
    short = uniform % 10 ** torch.randint(1, spec.digits + 1, (count, 2), generator=generator)
    kind = torch.rand(count, generator=generator)[:, None]
    mixed = torch.where(
        kind < 0.5, uniform, torch.where(kind < 0.7, short, _nines(spec, uniform, generator))
    )
    return mixed.clamp(min=low)


def _nines(spec: AdditionTask, pairs: Int[Tensor, "N 2"], generator: Generator) -> Int[Tensor, "N 2"]:
    """Replace random columns of the second operand by nine less the first operand's digit."""
    power = 10 ** torch.arange(spec.digits)
    a, b = (pairs[:, side, None] // power % 10 for side in (0, 1))  # (N, digits) each
    nine = torch.rand(a.shape, generator=generator) < 0.5
    return torch.stack((pairs[:, 0], (torch.where(nine, 9 - a, b) * power).sum(dim=1)), dim=1)
