"""Drawing sets of lists, half of them sorted, in given ways to be out of order."""

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Generator, Tensor

from attnlab.errors import InputError
from attnlab.examples import Examples
from attnlab.problems.sorting.lists import (
    is_sorted,
    lengths_of,
    sorted_lists,
    swap_neighbours,
    unsorted_lists,
)
from attnlab.problems.sorting.words import LONGEST, PAD, SHORTEST, SORTED, UNSORTED, Sampling, Way


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
