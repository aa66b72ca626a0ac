"""Two sums that differ only in whether a carry arrives."""

from typing import Literal, NamedTuple

import pytest
import torch
from torch import Generator, Tensor

from attnlab.errors import InputError
from attnlab.problems.addition import Addition
from attnlab.problems.addition.pairs import carry_pairs
from attnlab.problems.addition.task import Digit

CASES = [(column, reach) for column in (1, 2, 3) for reach in range(1, column + 1)]


def adder(
    order: Literal["most", "least"] = "least",
    operands: Literal["full", "reference"] = "full",
    digits: int = 3,
) -> Addition:
    return Addition(digits=digits, order=order, operands=operands, train=11, valid=7, test=5)


class Sums(NamedTuple):
    """Operands with and without the carry, and where the target has the column."""

    carried: Tensor
    plain: Tensor
    place: int


def drawn(task: Addition, column: int, reach: int = 1, digit: Digit = "same", count: int = 499) -> Sums:
    generator = Generator().manual_seed(5)
    pairs = carry_pairs(task, column=column, reach=reach, digit=digit, count=count, generator=generator)
    power = 10 ** torch.arange(task.digits)
    carried, plain = (
        (task.read_back(side.inputs[0])[0] * power).sum(dim=2) for side in (pairs.donor, pairs.base)
    )
    assert pairs.place is not None
    return Sums(carried, plain, pairs.place)


def columns(numbers: Tensor, count: int) -> Tensor:
    """Digits by column, the ones first."""
    return numbers[..., None] // 10 ** torch.arange(count) % 10


@pytest.mark.parametrize("digit", ["same", "any"])
@pytest.mark.parametrize("operands", ["full", "reference"])
@pytest.mark.parametrize(("column", "reach"), CASES)
def test_only_the_deciding_column_differs_and_sends_its_carry_up(
    column: int, reach: int, operands: Literal["full", "reference"], digit: Digit
) -> None:
    task = adder(operands=operands)
    pairs = drawn(task, column, reach, digit)
    assert len(pairs.carried) == 499
    carried, plain = columns(pairs.carried, 3), columns(pairs.plain, 3)  # (N, 2, 3)
    deciding = column - reach
    same = torch.arange(3) != deciding
    assert torch.equal(carried[..., same], plain[..., same])
    assert (carried[:, :, deciding + 1 : column].sum(dim=1) == 9).all()
    sends = slice(deciding, column)
    assert task.carries(pairs.carried)[:, sends].all()
    assert not task.carries(pairs.plain)[:, sends].any()
    assert torch.equal(task.carries(pairs.carried)[:, column:], task.carries(pairs.plain)[:, column:])
    low, high = task.operand_range
    assert int(torch.stack((pairs.carried, pairs.plain)).min()) >= low
    assert int(torch.stack((pairs.carried, pairs.plain)).max()) <= high


@pytest.mark.parametrize("order", ["least", "most"])
@pytest.mark.parametrize(("column", "reach"), CASES)
def test_answers_differ_only_from_the_column_above_the_deciding_one_to_that_of_the_carry(
    column: int, reach: int, order: Literal["most", "least"]
) -> None:
    task = adder(order)
    pairs = drawn(task, column, reach)
    with_carry, without = (columns(sums.sum(dim=1), 4) for sums in (pairs.carried, pairs.plain))
    differs = torch.tensor([column - reach < each <= column for each in range(4)])
    assert torch.equal(with_carry != without, differs.expand(499, 4))
    assert torch.equal(with_carry[:, column], (without[:, column] + 1) % 10)
    assert (with_carry[:, column - reach + 1 : column] == 0).all()
    assert (without[:, column - reach + 1 : column] == 9).all()
    assert torch.equal(task.target(pairs.carried)[:, pairs.place], with_carry[:, column])
    assert task.places()[pairs.place] == f"10^{column}"


def test_with_a_reach_of_one_what_is_fed_up_to_the_column_is_the_same() -> None:
    for order in ("least", "most"):
        task = adder(order)
        pairs = drawn(task, 2)
        fed = [task.examples(sums).inputs[1][:, : pairs.place + 1] for sums in (pairs.carried, pairs.plain)]
        assert torch.equal(*fed)
        sources = [task.source(sums) for sums in (pairs.carried, pairs.plain)]
        assert ((sources[0] != sources[1]).sum(dim=1) <= 2).all()


def test_any_digit_may_be_left_if_so_asked() -> None:
    pairs = drawn(adder(), 1, digit="any")
    said = [sums.sum(dim=1) % 10 for sums in (pairs.carried, pairs.plain)]
    assert 0.05 < (said[0] == said[1]).float().mean() < 0.2
    assert [len(torch.unique(digits)) for digits in said] == [9, 10]  # no two digits sum to 19


def test_pairs_are_different_and_given_by_the_generator() -> None:
    task = adder()
    pairs = drawn(task, 3, count=997)
    both = torch.cat((pairs.carried, pairs.plain), dim=1)
    assert len(torch.unique(both, dim=0)) == len(both) == 997
    again = drawn(task, 3, count=997)
    assert torch.equal(again.carried, pairs.carried)
    assert torch.equal(again.plain, pairs.plain)


def test_where_there_are_few_all_are_found() -> None:
    """s = 10 to 18 can be had in 19 - s ways, s - 10 in s - 9: 165 pairs of one column."""
    pairs = drawn(adder(digits=1), 1, count=499)
    assert len(pairs.carried) == sum((19 - s) * (s - 9) for s in range(10, 19)) == 165


def test_a_part_of_the_pairs() -> None:
    pairs = carry_pairs(adder(), column=2, count=7, generator=Generator().manual_seed(5))
    assert len(pairs) == 7
    assert len(pairs[2:5]) == 3
    assert torch.equal(pairs[2:5].base.targets, pairs.base.targets[2:5])
    every_second = pairs[torch.tensor([True, False] * 3 + [True])]
    assert torch.equal(every_second.donor.inputs[0], pairs.donor.inputs[0][::2])
    assert (every_second.name, every_second.number) == ("10^2", 2)


def test_columns_where_no_carry_can_come_from_are_refused() -> None:
    for column in (0, 4):
        with pytest.raises(InputError, match=f"columns 1 to 3 of these sums, not at {column}"):
            drawn(adder(), column)
    for reach in (0, 3):
        with pytest.raises(
            InputError, match=f"reach is {reach}, but a carry into column 2 comes from 1 to 2"
        ):
            drawn(adder(), 2, reach)
