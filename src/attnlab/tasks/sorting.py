"""Telling whether a list of numbers is sorted, at any length from 2 to 16,384.

Numbers go from 0 to 99, with duplicates; a list is sorted if none is smaller than the one before it. A
number is its own token. Padding has another, so that lists of several lengths share one tensor; class 1 is
"sorted". Of every set of lists exactly half are sorted (of an odd number the smaller half), and no length
tells which.

Lists of the three splits, and of each fresh epoch, are drawn independently, each from its own generator.
From eight numbers on there are more than 10^11 sorted lists, so that the same one hardly comes twice.
"""

import re
from collections.abc import Iterator
from typing import final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Generator, Tensor

from attnlab.errors import InputError
from attnlab.spec import LONGEST, NUMBERS, PAD, SHORTEST, SortingTask, read_negatives
from attnlab.spec.sorting import Sampling, Way
from attnlab.tasks.examples import Examples, Splits
from attnlab.tasks.lists import is_sorted, lengths_of, sorted_lists, swap_neighbours, unsorted_lists

UNSORTED, SORTED = 0, 1
CLASSES = ("unsorted", "sorted")

_TEST, _VALID, _TRAIN, _LENGTHS = range(4)  # which generator
_SHOWN = 40  # characters of a wrong input that are shown


@final
class Sorting:
    """The task of ``SortingTask``: lists (N, L) of tokens, and whether they are sorted (N,)."""

    vocabulary = len(CLASSES)

    def __init__(self, spec: SortingTask) -> None:
        self.spec = spec

    def splits(self, seed: int) -> Splits:
        """Training, validation and test lists; with ``fresh`` the training lists are those of epoch 0."""
        spec = self.spec
        moving = spec.fresh or spec.exchanged > 0
        return Splits(
            self.training(seed, 0),
            self._drawn(spec.valid, own_generator(seed, _VALID)),
            self._drawn(spec.test, own_generator(seed, _TEST), "uniform"),
            (lambda epoch: self.training(seed, epoch)) if moving else None,
        )

    def training(self, seed: int, epoch: int) -> Examples:
        """Training lists of an epoch, a function of seed and epoch alone."""
        if not self.spec.exchanged:
            return self._drawn(self.spec.train, own_generator(seed, _TRAIN, epoch))
        fixed = self._drawn(self.spec.train, own_generator(seed, _TRAIN, 0))
        return exchanged(fixed, self.spec.exchanged, own_generator(seed, _TRAIN, epoch, 1))

    def draw(self, count: int, length: int, negatives: str, generator: Generator) -> Examples:
        """Lists of one length, numbers uniform."""
        check_length(length)
        lengths = torch.full((count,), length)
        return balanced(lengths, length, read_negatives(negatives), generator)

    def draws(self, count: int, length: int, negatives: str, *, seed: int, most: int) -> Iterator[Examples]:
        """The same lists of one length for everybody who asks with this seed, ``most`` at a time.

        ``most`` is even, so that every part but the last has as many sorted lists as unsorted ones.
        """
        generator = own_generator(seed, _LENGTHS, length, *negatives.encode())
        for start in range(0, count, most):
            yield self.draw(min(most, count - start), length, negatives, generator)

    def _drawn(self, count: int, generator: Generator, sampling: Sampling | None = None) -> Examples:
        """Lists as the spec says, or with another ``sampling``."""
        spec = self.spec
        lengths = torch.randint(spec.low, spec.high + 1, (count,), generator=generator)
        shares = read_negatives(spec.negatives)
        return balanced(lengths, spec.high, shares, generator, sampling or spec.sampling)

    def parse(self, text: str) -> Int[Tensor, "L"]:
        """Read ``3 5 5 9 8``; commas may stand between the numbers too."""
        words = re.split(r"[\s,]+", text.strip(" \t\r\n,"))
        if words == [""]:
            raise InputError("the list is empty; write numbers such as 3 5 5 9 8")
        for word in words:
            if not re.fullmatch(r"[+-]?\d+", word, re.ASCII):
                raise InputError(f"{word[:_SHOWN]!r} is no whole number; write a list such as 3 5 5 9 8")
            if len(word) > 9 or not 0 <= int(word) < NUMBERS:
                raise InputError(f"{word[:_SHOWN]} is outside 0 to {NUMBERS - 1}, the numbers of this task")
        check_length(len(words))
        return torch.tensor([int(word) for word in words])

    def symbols(self, tokens: Int[Tensor, "L"]) -> list[str]:
        """A printable sign for each token."""
        return [_symbol(token) for token in tokens.tolist()]


def balanced(
    lengths: Int[Tensor, "N"],
    longest: int,
    shares: dict[Way, float],
    generator: Generator,
    sampling: Sampling = "uniform",
) -> Examples:
    """Lists of the given lengths, filled up to the ``longest``, in random order, half of them sorted."""
    count = len(lengths)
    sizes = split_counts(count, shares)
    good, *bad = torch.split(lengths, [count // 2, *sizes.values()])
    parts = [
        sorted_lists(good, generator, sampling),
        *(unsorted_lists(part, way, generator, sampling) for way, part in zip(sizes, bad, strict=True)),
    ]
    tokens = torch.cat([F.pad(part, (0, longest - part.shape[1]), value=PAD) for part in parts])
    tokens = tokens[torch.randperm(count, generator=generator)]
    return Examples((tokens,), is_sorted(tokens).long())


def exchanged(lists: Examples, share: float, generator: Generator) -> Examples:
    """The same lists, but for a ``share`` of the unsorted ones.

    In their places stand sorted ones of the set, drawn with replacement, with one pair of different
    neighbours exchanged. A list of equal numbers stays as it is.
    """
    (tokens,), answers = lists.inputs, lists.targets
    bad, good = (answers == UNSORTED).nonzero()[:, 0], (answers == SORTED).nonzero()[:, 0]
    away = bad[torch.randperm(len(bad), generator=generator)[: round(share * len(bad))]]
    drawn = tokens[good[torch.randint(len(good), (len(away),), generator=generator)]]
    tokens = tokens.index_copy(0, away, swap_neighbours(drawn, lengths_of(drawn), generator))
    return Examples((tokens,), is_sorted(tokens).long())


def split_counts(count: int, shares: dict[Way, float]) -> dict[Way, int]:
    """How many lists of ``count`` are put out of order in each way; all others are sorted.

    What a share leaves over by rounding goes to the ways with the largest remainders.
    """
    bad = count - count // 2
    exact = {way: share * bad for way, share in shares.items()}
    whole = {way: int(size) for way, size in exact.items()}
    by_remainder = sorted(exact, key=lambda way: whole[way] - exact[way])
    for way in by_remainder[: bad - sum(whole.values())]:
        whole[way] += 1
    return whole


def check_length(length: int) -> None:
    """Refuse a list that is too short or too long."""
    if not SHORTEST <= length <= LONGEST:
        raise InputError(
            f"a list of length {length:,} is outside {SHORTEST} to {LONGEST:,}, the lengths of this task"
        )


def _symbol(token: int) -> str:
    return str(token) if token < NUMBERS else "·" if token == PAD else "cls"


def own_generator(*words: int) -> Generator:
    """A generator of its own for each sequence of numbers."""
    (state,) = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return Generator().manual_seed(int(state) % 2**63)
