"""Lists of numbers that are sorted, and lists that are not: drawn many at once, and sets of their keys.

Rows hold lists of different lengths, filled up with the padding token, which is larger than every number:
so a list is sorted exactly if its whole row is, and sorting a row leaves the padding at its end.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from attnlab.errors import InputError
from attnlab.problems.sorting.words import LONGEST, NUMBERS, PAD, SHORTEST, SORTED, UNSORTED, Sampling, Way
from attnlab.sets import Examples

Rows = Int[Tensor, "N L"]
Lengths = Int[Tensor, "N"]

_REACH = 10  # of a band, on either side of its middle
_WHOLE = {"ranges": 0.5, "bands": 0.2}  # share of lists that may hold any number


def is_sorted(rows: Rows) -> Bool[Tensor, "N"]:
    """Whether no number is smaller than the one before it."""
    return (rows[:, 1:] >= rows[:, :-1]).all(dim=1)


def sorted_lists(lengths: Lengths, generator: Generator, sampling: Sampling = "uniform") -> Rows:
    """Independent numbers, sorted: from 0 to 99, or many of the lists from a part of their own."""
    count, longest = len(lengths), _longest(lengths)
    low, high = torch.zeros(count, 1), torch.full((count, 1), float(NUMBERS))
    if sampling != "uniform":
        ends = _part_ends(count, sampling, generator)
        whole = torch.rand(count, 1, generator=generator) < _WHOLE[sampling]
        low = ends.amin(dim=1, keepdim=True).masked_fill(whole, 0)
        high = ends.amax(dim=1, keepdim=True).masked_fill(whole, NUMBERS - 1) + 1
    uniform = torch.rand(count, longest, generator=generator, dtype=torch.float64)
    numbers = (low + uniform * (high - low)).long()
    return numbers.masked_fill(~within(lengths, longest), PAD).sort(dim=1).values


def _part_ends(count: int, sampling: Sampling, generator: Generator) -> Int[Tensor, "N 2"]:
    """Two independent numbers, 0 between them in one case of fifty, 50 in one of two; or, of ``bands``, a
    number minus and plus up to 10, cut off at 0 and 99: one of 17 has the 0.
    """
    if sampling == "ranges":
        return torch.randint(0, NUMBERS, (count, 2), generator=generator)
    middle = torch.randint(0, NUMBERS, (count, 1), generator=generator)
    reach = torch.randint(0, _REACH + 1, (count, 1), generator=generator)
    return torch.cat([middle - reach, middle + reach], dim=1).clamp(0, NUMBERS - 1)


def unsorted_lists(
    lengths: Lengths, way: Way, generator: Generator, sampling: Sampling = "uniform"
) -> Rows:
    """Sorted lists that were put out of order; what came out sorted is drawn again."""
    rows = torch.full((len(lengths), _longest(lengths)), PAD)
    again = torch.arange(len(lengths))
    while len(again):
        drawn = sorted_lists(lengths[again], generator, sampling)
        drawn = _DISORDER[way](drawn, lengths[again], generator)
        rows[again, : drawn.shape[1]] = drawn
        again = again[is_sorted(drawn)]
    return rows


def lengths_of(rows: Rows) -> Lengths:
    """How many numbers each row holds."""
    return (rows != PAD).sum(dim=1)


def within(lengths: Lengths, longest: int) -> Bool[Tensor, "N L"]:
    """Where a row holds numbers."""
    return torch.arange(longest) < lengths[:, None]


def _longest(lengths: Lengths) -> int:
    return int(lengths.max()) if len(lengths) else 0


def exchanges(lengths: Lengths) -> Lengths:
    """How many exchanges ``reference`` makes: max(2, L // 3).

    A list of two gets one, since a second would undo the first.
    """
    return torch.where(lengths == 2, 1, (lengths // 3).clamp(min=2))


def swap_neighbours(rows: Rows, lengths: Lengths, generator: Generator) -> Rows:
    """Exchange one pair of different neighbours, each pair as likely; equal numbers stay as they are."""
    differ = (rows[:, :-1] != rows[:, 1:]) & within(lengths - 1, rows.shape[1] - 1)
    chance = torch.rand(differ.shape, generator=generator, dtype=torch.float64)
    left = torch.where(differ, chance, -1.0).argmax(dim=1, keepdim=True)
    return _exchange(rows, left, left + differ.any(dim=1, keepdim=True))


def _swap_places(rows: Rows, lengths: Lengths, generator: Generator) -> Rows:
    """Exchange two arbitrary different places, again and again; all rows take one step at a time."""
    wanted, size = exchanges(lengths), lengths[:, None].double()
    for step in range(_longest(wanted)):
        chance = torch.rand(len(rows), 2, generator=generator, dtype=torch.float64)
        first = (chance[:, :1] * size).long()
        apart = 1 + (chance[:, 1:] * (size - 1)).long()
        second = torch.where(step < wanted[:, None], (first + apart) % lengths[:, None], first)
        _exchange(rows, first, second)
    return rows


def _shuffle(rows: Rows, lengths: Lengths, generator: Generator) -> Rows:
    chance = torch.rand(rows.shape, generator=generator, dtype=torch.float64)
    order = chance.masked_fill(~within(lengths, rows.shape[1]), 2.0).argsort(dim=1)
    return rows.gather(1, order)


_DISORDER = {"swap": swap_neighbours, "reference": _swap_places, "shuffle": _shuffle}


def _exchange(rows: Rows, first: Int[Tensor, "N 1"], second: Int[Tensor, "N 1"]) -> Rows:
    """Exchange the numbers at two places of each row, in place: long rows need not be copied."""
    places = torch.cat((first, second), dim=1)
    return rows.scatter_(1, places, rows.gather(1, places.flip(1)))


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


def sorting_sets(tokens: Int[Tensor, "N T"]) -> dict[tuple[str, str], dict[str, Tensor]]:
    """Sets for a model that reads lists x, as tokens with whatever stands in front of the numbers.

    next         s = t + 1
    wrong_side   s > t and x_s < x_t, or s < t and x_s > x_t: keys that show the list to be unsorted
    """
    numbers = tokens < NUMBERS
    places = torch.arange(tokens.shape[1])
    after = places > places[:, None]  # (T, S)
    smaller, larger = (compare(tokens[:, None], tokens[..., None]) for compare in (torch.lt, torch.gt))
    return {
        ("encoder", "self"): {
            "next": places - places[:, None] == 1,
            "wrong_side": torch.where(after, smaller, larger) & numbers[:, None] & numbers[..., None],
        }
    }
