"""Drawing pairs: distinct, disjoint, deterministic, and distributed as promised."""

from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from attnlab.problems.addition import Addition
from attnlab.problems.addition.pairs import distinct_pairs
from attnlab.sets import Examples, fitted

Sampling = Literal["uniform", "balanced"]
SAMPLINGS: tuple[Sampling, Sampling] = ("uniform", "balanced")
every_sampling = pytest.mark.parametrize("sampling", SAMPLINGS)


def unordered(pairs: Tensor) -> set[tuple[int, int]]:
    return {(min(a, b), max(a, b)) for a, b in pairs.tolist()}


def draw(spec: Addition, count: int, sampling: Sampling, taken: Tensor | None = None) -> Tensor:
    return distinct_pairs(spec, count, torch.Generator().manual_seed(1), sampling=sampling, taken=taken)


def test_operand_range() -> None:
    assert Addition(digits=3).operand_range == (0, 999)
    assert Addition(digits=3, operands="reference").operand_range == (100, 999)
    assert Addition(digits=1, operands="reference", train=1, valid=1, test=1).operand_range == (1, 9)


@settings(max_examples=30)
@given(
    st.builds(
        Addition,
        digits=st.integers(2, 12),
        operands=st.sampled_from(("full", "reference")),
        sampling=st.sampled_from(("uniform", "balanced")),
        train=st.integers(1, 211),
        valid=st.integers(1, 53),
        test=st.integers(1, 53),
    ),
    st.integers(0, 2**31 - 1),
)
def test_splits_are_disjoint_and_right_in_size(spec: Addition, seed: int) -> None:
    parts = spec.split_pairs(seed)
    assert [len(part) for part in parts] == [spec.train, spec.valid, spec.test]
    assert len(unordered(torch.cat(parts))) == spec.train + spec.valid + spec.test
    low, high = spec.operand_range
    assert low <= min(part.min() for part in parts)
    assert max(part.max() for part in parts) <= high


@every_sampling
def test_splits_are_a_function_of_the_seed(sampling: Sampling) -> None:
    task = Addition(sampling=sampling, train=101, valid=11, test=13)
    first, again, other = task.split_pairs(3), task.split_pairs(3), task.split_pairs(4)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_test_pairs_do_not_depend_on_how_training_pairs_are_drawn() -> None:
    few = Addition(sampling="uniform", train=10, test=101)
    many = Addition(sampling="balanced", train=1000, test=101)
    assert torch.equal(few.split_pairs(3)[2], many.split_pairs(3)[2])


def test_splits_are_the_examples_of_the_pairs() -> None:
    task = Addition(train=7, valid=5, test=3)
    splits, pairs = task.splits(2), task.split_pairs(2)
    for part, of in zip((splits.train, splits.valid, splits.test), pairs, strict=True):
        assert isinstance(part, Examples)
        assert len(part) == len(of)
        assert torch.equal(part.inputs[0], task.source(of))
        assert torch.equal(part.targets, task.target(of))


def test_examples_are_indexed_together() -> None:
    examples = Addition().splits(0).train
    chosen = torch.tensor([5, 0, 3])
    for index in (chosen, slice(2, 9)):
        part = examples[index]
        assert torch.equal(part.targets, examples.targets[index])
        assert all(torch.equal(p, e[index]) for p, e in zip(part.inputs, examples.inputs, strict=True))


@every_sampling
def test_test_split_is_uniform(sampling: Sampling) -> None:
    """Every digit of both operands is equally frequent, whatever the sampling of training pairs."""
    task = Addition(digits=3, sampling=sampling, train=100, valid=10, test=5000)
    _, _, test = task.split_pairs(0)
    for side in (0, 1):
        for column in range(3):
            counts = torch.bincount(test[:, side] // 10**column % 10, minlength=10)
            assert chisquare(counts.numpy()).pvalue > 1e-3
    correlation = torch.corrcoef(test.T.double())[0, 1].item()
    assert abs(correlation) < 0.05
    assert test.double().mean().item() == pytest.approx(499.5, abs=15)
    assert test.double().std().item() == pytest.approx(1000 / 12**0.5, rel=0.03)


@every_sampling
def test_small_space_is_used_up(sampling: Sampling) -> None:
    """One digit has 55 unordered pairs, and all of them can be had."""
    pairs = draw(Addition(digits=1, train=1, valid=1, test=1), 55, sampling)
    assert unordered(pairs) == {(a, b) for b in range(10) for a in range(b + 1)}
    task = Addition(digits=1, sampling=sampling, train=35, valid=10, test=10)
    assert len(unordered(torch.cat(task.split_pairs(0)))) == 55


def test_small_space_where_chance_finds_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.problems.addition.pairs._ROUNDS", 0)
    spec = Addition(digits=1, train=1, valid=1, test=1)
    taken = torch.tensor([[3, 1], [2, 2]])
    rest = draw(spec, 53, "uniform", taken)
    assert len(unordered(rest)) == 53
    assert unordered(rest).isdisjoint(unordered(taken))
    assert rest.tolist() != sorted(rest.tolist())


@pytest.mark.parametrize(("operands", "sizes"), [("full", [47, 4, 4]), ("reference", [39, 3, 3])])
def test_of_fewer_pairs_than_wanted_each_split_gets_its_share(
    operands: Literal["full", "reference"], sizes: list[int]
) -> None:
    """20,000, 2,000 and 2,000 pairs are wanted; one digit has 55, and 45 without zero."""
    splits = Addition(digits=1, operands=operands, train=20_000).split_pairs(0)
    assert [len(each) for each in splits] == sizes
    assert len(unordered(torch.cat(splits))) == sum(sizes)


def test_shares_of_few_examples() -> None:
    assert fitted(5, 3, 2, 10) == (5, 3, 2)  # as asked for
    assert fitted(5, 3, 2, 9) == (6, 2, 1)
    assert fitted(1, 100, 100, 11) == (5, 3, 3)  # training keeps a third
    assert fitted(1000, 1, 1, 10) == (8, 1, 1)  # nobody is left without


def test_taken_pairs_are_not_drawn_again_in_either_order() -> None:
    spec = Addition(digits=2, train=1, valid=1, test=1)
    taken = draw(spec, 2000, "uniform")
    more = draw(spec, 2000, "balanced", taken.flip(1))
    assert len(unordered(more)) == 2000
    assert unordered(more).isdisjoint(unordered(taken))


def ripples(pairs: Tensor, digits: int) -> Tensor:
    """Whether a carry arises in the ones and then passes on through columns that all sum to nine."""
    power = 10 ** torch.arange(digits)
    columns = (pairs[:, :1] // power % 10) + (pairs[:, 1:] // power % 10)
    return (columns[:, 0] > 9) & (columns[:, 1:] == 9).all(dim=1)


def share(flags: Tensor) -> float:
    return flags.double().mean().item()


def test_balanced_gives_short_operands_their_share() -> None:
    uniform, balanced = (draw(Addition(digits=3), 5000, s).min(dim=1).values < 10 for s in SAMPLINGS)
    assert share(uniform) == pytest.approx(0.02, abs=0.01)
    assert share(balanced) > 4 * share(uniform)


@pytest.mark.parametrize("digits", [3, 5])
def test_balanced_gives_rippling_carries_their_share(digits: int) -> None:
    """By chance a carry ripples through all columns of 0.45 * 0.1^(digits - 1) of the sums."""
    by_chance = 0.45 * 0.1 ** (digits - 1)
    uniform, balanced = (ripples(draw(Addition(digits=digits), 40_000, s), digits) for s in SAMPLINGS)
    assert share(uniform) == pytest.approx(by_chance, abs=0.002)
    assert share(balanced) > 3 * by_chance


def test_balanced_gives_double_digits_their_share() -> None:
    """At least 0.15 by design, and a tenth of the 0.7 that are left to chance."""
    columns = 10 ** torch.arange(3)
    uniform, balanced = (draw(Addition(digits=3), 20_000, s) for s in SAMPLINGS)
    doubles = [share(p[:, :1] // columns % 10 == p[:, 1:] // columns % 10) for p in (uniform, balanced)]
    assert doubles[0] == pytest.approx(0.1, abs=0.01)
    assert doubles[1] > 0.2
