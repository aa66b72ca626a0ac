"""Margins of models whose answer is known: a mean thins out as 1/n, a minimum does not."""

import math

import pytest
import torch
from torch import Tensor

from attnlab.model import Model
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.exchanges import Exchanges, Margin, exponent, measure_margins


class Falls(Model):
    """Falls between neighbours: their number, its share of all neighbours, or whether there is one."""

    def __init__(self, pool: str) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, lists: Tensor) -> Tensor:
        falls = (lists[:, 1:] < lists[:, :-1]).double()
        found = {"sum": falls.sum(1), "mean": falls.mean(1), "most": falls.amax(1)}[self.pool]
        return torch.stack((found, -found), dim=1)


LENGTHS = (17, 31, 61, 127)


@pytest.mark.parametrize("pool", ["sum", "most"])
def test_a_sum_and_an_extreme_keep_their_margin(pool: str) -> None:
    found = measure_margins(Sorting(), Falls(pool), Exchanges(LENGTHS, lists=7))
    assert [row.length for row in found.rows] == list(LENGTHS)
    assert [row.margin for row in found.rows] == [2.0] * 4
    assert [row.error for row in found.rows] == [0.0] * 4
    assert found.exponent == pytest.approx(0)


def test_a_mean_thins_out_with_length() -> None:
    found = measure_margins(Sorting(), Falls("mean"), Exchanges(LENGTHS, lists=7))
    for row in found.rows:
        assert row.margin == pytest.approx(2 / (row.length - 1))
    assert found.exponent == pytest.approx(-1, abs=0.05)


def test_the_exponent_of_a_power() -> None:
    rows = [Margin(n, 3 * n**-1.5, 0.0) for n in LENGTHS]
    assert exponent(rows) == pytest.approx(-1.5)
    assert exponent([*rows, Margin(200, 0.0, 0.0)]) is None
    assert math.isclose(exponent([Margin(n, 5.0, 0.0) for n in LENGTHS]) or 0.0, 0.0)
