"""Drawing operands of any length, digit by digit, with training pairs of its own for every epoch.

Lengths are uniform between the task's shortest and longest. Test and validation pairs are drawn once, no
two the same as unordered pairs; of the few that short operands have they take at most ``HELD`` each.
Training pairs are drawn anew for each epoch from all others.

    uniform     every digit uniform
    balanced    in half of the pairs columns sum to nine with a probability that is drawn for the pair, up
                to ``NINES``, so that chains of all lengths come; columns with the same digit twice
                and shorter second operands come as in ``pairs.py``
    full-carry  a carry is sent by every column: 9...99 + 1 in either order, or columns that sum to nine
                above a first one that sums to more
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from attnlab import sets
from attnlab.problems.addition.operands import Digits, codes
from attnlab.problems.addition.pairs import DOUBLE, SHORT, first_of_each
from attnlab.problems.addition.task import Addition
from attnlab.problems.addition.words import Carrying

HELD = 0.1
"""Share of the pairs of one length that may be kept from training."""
NINES = 0.8

_TEST, _VALID, _TRAIN, _SET = range(4)  # which generator
Drawn = tuple[Tensor, Tensor]
"""Operands by digit (N, 2, C) and their lengths (N,); columns behind a length are 0."""


def splits(task: Addition, seed: int) -> sets.Splits:
    """Examples of all three splits, and training examples of each epoch."""
    test = _held(task, task.test, "uniform", sets.own_generator(seed, _TEST), None)
    valid = _held(task, task.valid, task.sampling, sets.own_generator(seed, _VALID), codes(test[0]))
    kept = torch.cat((codes(test[0]), codes(valid[0])))

    def training(epoch: int) -> sets.Examples:
        return task.examples(*_train(task, kept, sets.own_generator(seed, _TRAIN, epoch)))

    return sets.Splits(training(0), task.examples(*valid), task.examples(*test), training)


def carrying_sums(task: Addition, count: int, length: int, carrying: Carrying, seed: int) -> sets.Examples:
    """The same sums of one length for everybody who asks with this seed."""
    generator = sets.own_generator(seed, _SET, length, *carrying.encode())
    digits = (
        _full_carry(count, length, generator)
        if carrying == "full-carry"
        else _digits((count, 2, length), generator)
    )
    return task.examples(digits)


def _train(task: Addition, kept: Int[Tensor, "M"], generator: Generator) -> Drawn:
    found: list[Drawn] = []
    while sum(len(lengths) for _, lengths in found) < task.train:
        drawn = _draw(task, task.train, task.sampling, generator)
        found.append(_rows(drawn, ~torch.isin(codes(drawn[0]), kept)))
    return _rows(_joined(found), slice(task.train))


def _held(
    task: Addition, count: int, sampling: str, generator: Generator, taken: Int[Tensor, "M"] | None
) -> Drawn:
    """Different pairs, none of them ``taken``; of each length no more than may be held."""
    found = _draw(task, 0, sampling, generator)
    before = -1
    while before < len(found[1]) < count:
        before = len(found[1])
        found = _rows(*_fresh(_joined([found, _draw(task, count, sampling, generator)]), taken))
    return _rows(found, slice(count))


def _fresh(drawn: Drawn, taken: Int[Tensor, "M"] | None) -> tuple[Drawn, Bool[Tensor, "N"]]:
    """Which of the pairs to keep."""
    code = codes(drawn[0])
    keep = torch.zeros(len(code), dtype=torch.bool)
    keep[first_of_each(code[:, None])] = True
    if taken is not None:
        keep &= ~torch.isin(code, taken)
    for length in sorted(set(drawn[1].tolist())):
        same = (drawn[1] == length) & keep
        most = max(1, int(HELD * 10**length * (10**length + 1) // 2)) if length < 9 else len(code)
        keep &= ~same | (same.cumsum(dim=0) <= most)
    return drawn, keep


def _draw(task: Addition, count: int, sampling: str, generator: Generator) -> Drawn:
    shortest, longest = task.lengths
    lengths = torch.randint(shortest, longest + 1, (count,), generator=generator)
    digits = _digits((count, 2, longest), generator)
    if sampling == "balanced":
        digits = _balanced(digits, lengths, generator)
    inside = torch.arange(longest) < lengths[:, None]
    return digits * inside[:, None], lengths


def _balanced(digits: Digits, lengths: Int[Tensor, "N"], generator: Generator) -> Digits:
    a, b = digits.unbind(dim=1)
    count, columns = a.shape
    half, share, short = torch.rand(3, count, 1, generator=generator)
    kind = torch.rand(2, count, columns, generator=generator)
    b = torch.where(kind[0] < DOUBLE, a, b)
    b = torch.where(kind[1] < NINES * share * (half < 0.5), 9 - a, b)
    left = (torch.rand(count, 1, generator=generator) * (lengths[:, None] + 1)).long()
    return torch.stack((a, b * ~((short < SHORT) & (torch.arange(columns) >= left))), dim=1)


def _full_carry(count: int, length: int, generator: Generator) -> Digits:
    """A third of all are 9...99 + 1, in either order."""
    a = _digits((count, length), generator)
    a[:, 0] = _digits((count,), generator, lowest=1)
    more = (torch.rand(count, generator=generator) * a[:, 0]).long()  # 0 to a - 1
    b = torch.cat((10 - a[:, :1] + more[:, None], 9 - a[:, 1:]), dim=1)
    nines, one = torch.full((count, length), 9), F.pad(torch.ones(count, 1).long(), (0, length - 1))
    plain = torch.arange(count)[:, None] % 3 == 0
    pair = torch.stack((torch.where(plain, nines, a), torch.where(plain, one, b)), dim=1)
    return torch.where((torch.arange(count) % 2 == 0)[:, None, None], pair, pair.flip(1))


def _digits(shape: tuple[int, ...], generator: Generator, lowest: int = 0) -> Tensor:
    return torch.randint(lowest, 10, shape, generator=generator)


def _rows(drawn: Drawn, index: Bool[Tensor, "N"] | slice) -> Drawn:
    return drawn[0][index], drawn[1][index]


def _joined(parts: list[Drawn]) -> Drawn:
    operands, lengths = zip(*parts, strict=True)
    return torch.cat(operands), torch.cat(lengths)
