"""The task of telling sorted lists: balanced, made as said, of any length, and refused in one sentence."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.errors import InputError, SpecError
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.lists import balanced, exchanges, sorted_lists, split_counts, unsorted_lists
from attnlab.problems.sorting.words import PAD, read_negatives
from attnlab.sets import Examples


def drawn(count: int, length: int, negatives: str, seed: int = 0) -> Examples:
    return Sorting().draw(count, length, negatives, torch.Generator().manual_seed(seed))


def rows_of(examples: Examples) -> tuple[list[list[int]], list[int]]:
    lists = [[token for token in row if token != PAD] for row in examples.inputs[0].tolist()]
    return lists, examples.targets.tolist()


def descents(row: list[int]) -> int:
    return sum(b < a for a, b in pairwise(row))


@pytest.mark.parametrize(
    "negatives", ["swap", "reference", "shuffle", "swap=0.5,reference=0.3,shuffle=0.2"]
)
@pytest.mark.parametrize("length", [2, 3, 5, 17, 101])
def test_labels_are_true_and_balanced(length: int, negatives: str) -> None:
    for count in (1, 2, 101):
        lists, labels = rows_of(drawn(count, length, negatives))
        assert labels == [int(row == sorted(row)) for row in lists]
        assert sum(labels) == count // 2
        assert all(len(row) == length for row in lists)
        assert all(0 <= number <= 99 for row in lists for number in row)


@pytest.mark.parametrize("negatives", ["swap", "reference", "shuffle"])
def test_the_longest_lists(negatives: str) -> None:
    examples = drawn(4, 16_384, negatives)
    assert examples.inputs[0].shape == (4, 16_384)
    assert sorted(examples.targets.tolist()) == [0, 0, 1, 1]


def test_swap_exchanges_one_pair_of_different_neighbours() -> None:
    lists, labels = rows_of(drawn(601, 13, "swap"))
    places = set()
    for row, label in zip(lists, labels, strict=True):
        if label == 0:
            (place,) = (p for p, (a, b) in enumerate(pairwise(row)) if b < a)
            places.add(place)
            row[place], row[place + 1] = row[place + 1], row[place]
            assert row == sorted(row)
    assert places == set(range(12))


def test_reference_exchanges_a_third_of_the_places() -> None:
    lengths = torch.tensor([2, 3, 8, 9, 16, 256])
    assert exchanges(lengths).tolist() == [1, 2, 2, 3, 5, 85]
    generator = torch.Generator().manual_seed(1)
    rows = unsorted_lists(torch.full((400,), 16), "reference", generator)
    moved = (rows != rows.sort(dim=1).values).sum(dim=1)
    assert moved.min() >= 2
    assert moved.max() <= 10  # five exchanges move ten numbers at most
    mean = sum(map(descents, rows.tolist())) / len(rows)
    assert 3 < mean < 6  # with one exchanged pair of neighbours it would be 1, after a shuffle 7.5


def test_shuffled_lists_fall_half_of_the_time() -> None:
    rows = unsorted_lists(torch.full((400,), 101), "shuffle", torch.Generator().manual_seed(1)).tolist()
    assert abs(sum(map(descents, rows)) / 400 - 49.5) < 1


def test_numbers_are_uniform_or_from_ranges() -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.full((1000,), 10)
    whole = sorted_lists(lengths, generator).flatten().bincount(minlength=100)
    assert len(whole) == 100
    assert whole.min() > 60
    widths = sorted_lists(lengths, generator, "ranges")
    spread = (widths[:, -1] - widths[:, 0]).float()
    assert 45 < spread.mean() < 60  # ten numbers of 0 to 99 span 81 on average, of a range 28
    assert 0.25 < (spread < 33).float().mean() < 0.45  # 0.62 of the ranges, hardly any of the others
    assert widths.min() == 0
    assert widths.max() == 99


def test_bands_are_narrow_and_reach_the_ends() -> None:
    lengths = torch.full((4000,), 101)
    lists = sorted_lists(lengths, torch.Generator().manual_seed(0), "bands")
    spread = lists[:, -1] - lists[:, 0]
    narrow = lists[spread <= 20]
    assert 0.77 < len(narrow) / len(lists) < 0.83
    assert (spread > 80).sum() + len(narrow) == len(lists)
    for number in (0, 50, 99):  # in 6 and 11 of a hundred bands, the numbers of which are all drawn
        share = (narrow == number).any(dim=1).float().mean()
        assert 0.03 < share < 0.14


def test_shares_are_exact() -> None:
    shares = read_negatives("swap=0.7,reference=0.3")
    assert shares == {"swap": 0.7, "reference": 0.3}
    assert split_counts(200, shares) == {"swap": 70, "reference": 30}
    assert split_counts(7, shares) == {"swap": 3, "reference": 1}
    assert split_counts(3, shares) == {"swap": 1, "reference": 1}
    examples = balanced(torch.full((200,), 50), 50, shares, torch.Generator().manual_seed(0))
    lists, labels = rows_of(examples)
    falls = [descents(row) for row, label in zip(lists, labels, strict=True) if label == 0]
    assert sum(count == 1 for count in falls) == 70


@pytest.mark.parametrize("negatives", ["swap", "reference"])
def test_splits_hold_every_length_with_padding_behind(negatives: str) -> None:
    task = Sorting(low=3, high=7, train=211, valid=31, test=17, negatives=negatives)
    splits = task.splits(5)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (211, 31, 17)
    assert splits.resample is None
    for examples in (splits.train, splits.valid, splits.test):
        tokens = examples.inputs[0]
        assert tokens.shape[1] == 7
        assert examples.targets.sum() == len(examples) // 2
        lists, labels = rows_of(examples)
        assert {len(row) for row in lists} == {3, 4, 5, 6, 7}
        assert labels == [int(row == sorted(row)) for row in lists]
        assert torch.equal(tokens.sort(dim=1).values == PAD, tokens == PAD)
    again = task.splits(5)
    assert torch.equal(splits.train.inputs[0], again.train.inputs[0])
    assert not torch.equal(splits.train.inputs[0], task.splits(6).train.inputs[0])


def test_length_tells_nothing() -> None:
    task = Sorting(low=2, high=5, train=4000)
    examples = task.splits(0).train
    lengths = (examples.inputs[0] != PAD).sum(dim=1)
    for length in range(2, 6):
        assert abs(examples.targets[lengths == length].float().mean() - 0.5) < 0.06


def test_other_sizes_leave_test_lists_as_they_are() -> None:
    few, many = (Sorting(train=train, valid=train, fresh=True) for train in (5, 50))
    assert torch.equal(few.splits(2).test.inputs[0], many.splits(2).test.inputs[0])


def test_sorted_training_lists_come_back_with_one_pair_exchanged() -> None:
    plain = Sorting(train=1_000, low=7, high=13).splits(3)
    task = Sorting(train=1_000, low=7, high=13, exchanged=0.6)
    assert plain.resample is None
    (before,), (after,) = plain.train.inputs, task.splits(3).train.inputs
    assert torch.equal(task.splits(3).train.targets, plain.train.targets)  # half are sorted as before
    changed = (before != after).any(dim=1)
    assert changed.sum() == 300  # three fifths of 500
    assert not plain.train.targets[changed].any()
    known = {tuple(row) for row in before[plain.train.targets == 1].tolist()}
    assert {tuple(row) for row in after[changed].sort(dim=1).values.tolist()} <= known
    assert ((after[changed, 1:] < after[changed, :-1]).sum(dim=1) == 1).all()  # one place is wrong
    again = [task.training(3, epoch).inputs[0] for epoch in (1, 1, 2)]
    assert torch.equal(again[0], again[1])
    assert not torch.equal(again[0], again[2])
    assert torch.equal(task.splits(3).valid.inputs[0], plain.valid.inputs[0])


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"exchanged": 1.5}, "0 to 1"),
        ({"exchanged": 0.5, "fresh": True}, "swap="),
        ({"exchanged": 1.0, "train": 1}, "one"),
    ],
)
def test_exchanged_lists_need_a_fixed_set(fields: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule):
        Sorting(**fields)


def test_fresh_lists_are_a_function_of_seed_and_epoch() -> None:
    task = Sorting(train=50, fresh=True)
    splits = task.splits(3)
    assert splits.resample is not None

    def tokens(seed: int, epoch: int) -> Tensor:
        return task.training(seed, epoch).inputs[0]

    assert torch.equal(splits.resample(0).inputs[0], splits.train.inputs[0])
    assert torch.equal(splits.resample(7).inputs[0], tokens(3, 7))
    different = [tokens(3, 0), tokens(3, 1), tokens(3, 2), tokens(4, 0), splits.valid.inputs[0][:50]]
    assert len({tuple(map(tuple, each.tolist())) for each in different}) == 5


def test_reading_lists() -> None:
    task = Sorting()
    assert task.numbers("3 5 5 9 8").tolist() == [3, 5, 5, 9, 8]
    assert task.numbers(" 0,99, 07 \n").tolist() == [0, 99, 7]
    assert len(task.numbers("1 " * 16_384)) == 16_384
    assert task.symbols(torch.tensor([3, 99, PAD, 101])) == ["3", "99", "·", "cls"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the list is empty; write numbers such as 3 5 5 9 8"),
        (" , ", "the list is empty; write numbers such as 3 5 5 9 8"),
        ("7", "a list of length 1 is outside 2 to 16,384, the lengths of this task"),
        ("1 " * 16_385, "a list of length 16,385 is outside 2 to 16,384, the lengths of this task"),
        ("3 100", "100 is outside 0 to 99, the numbers of this task"),
        ("3 -1", "-1 is outside 0 to 99, the numbers of this task"),
        ("3 " + "9" * 5000, "9" * 40 + " is outside 0 to 99, the numbers of this task"),
        ("3 4.5", "'4.5' is not a whole number; write a list such as 3 5 5 9 8"),
        ("374+814", "'374+814' is not a whole number; write a list such as 3 5 5 9 8"),
        ("3 \u0663", "'\u0663' is not a whole number; write a list such as 3 5 5 9 8"),
    ],
)
def test_lists_that_cannot_be_read(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        Sorting().numbers(text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("length", [-1, 0, 1, 16_385])
def test_lengths_that_cannot_be_drawn(length: int) -> None:
    with pytest.raises(InputError, match=rf"length {length:,} is outside 2 to 16,384"):
        drawn(2, length, "swap")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"low": 1}, "task.low is 1, but it must be from 2 to 16,384"),
        ({"high": 7}, "task.high is 7, but it must be from task.low, which is 8, to 16,384"),
        ({"high": 16_385}, "task.high is 16385, but it must be from task.low, which is 8, to 16,384"),
        ({"train": 0}, "task.train is 0, but it must be at least 1"),
        ({"negatives": "swp"}, "negatives 'swp': unknown way 'swp'; did you mean 'swap'?"),
        ({"negatives": ""}, "negatives '': unknown way ''; known: reference, shuffle, swap"),
        (
            {"negatives": "swap=0.5,shuffle=0.4"},
            "negatives is 'swap=0.5,shuffle=0.4', but it must be shares that sum to 1",
        ),
        (
            {"negatives": "swap=0.5,swap=0.5"},
            "negatives is 'swap=0.5,swap=0.5', but it must be without swap twice",
        ),
        (
            {"negatives": "swap=x,shuffle=0.4"},
            "negatives is 'swap=x,shuffle=0.4', but it must be a way, "
            "or shares above 0 such as swap=0.7,reference=0.3",
        ),
    ],
)
def test_specs_that_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        Sorting(**settings)  # type: ignore[arg-type]
    assert str(caught.value) == sentence
