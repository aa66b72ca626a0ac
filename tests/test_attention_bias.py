"""A scheme that biases scores, unknown to the package, works without a change in attention."""

import math

import pytest
import torch

from attnlab.attention import Attention, causal
from attnlab.positions import Positions
from attnlab.taps import record
from schemes import Slopes
from twins import B, D, H, S, T, attention


def test_bias_by_hand() -> None:
    """Zero queries leave the bias alone: slope ln 2 halves the weight with every step of distance."""
    ours = Attention(width=2, heads=1, head_width=2).double()
    with torch.no_grad():
        ours.query.weight.zero_()
        ours.query.bias.zero_()
    x = torch.randn(1, 3, 2, dtype=torch.float64)
    placed = Positions(bias=Slopes(torch.tensor([math.log(2)], dtype=torch.float64))).at(3, x)
    with record(ours, "pattern") as seen:
        explicit = ours(x, x, placed=placed)
    expected = torch.tensor([[4, 2, 1], [2, 4, 2], [1, 2, 4]], dtype=torch.float64)
    expected = expected / expected.sum(-1, keepdim=True)
    torch.testing.assert_close(seen["pattern"][0, 0], expected)
    torch.testing.assert_close(ours(x, x, placed=placed), explicit, rtol=0, atol=1e-12)
    torch.testing.assert_close(explicit, ours.output(expected @ ours.value(x)))


def test_each_head_gets_its_own_bias() -> None:
    ours, x, memory = attention().double(), *torch.randn(2, B, T, D, dtype=torch.float64)
    placed = Positions(bias=Slopes(torch.tensor([0.0, 1.0, 1000.0], dtype=torch.float64))).at(T, x)
    with record(ours, "pattern") as biased:
        ours(x, memory, placed=placed)
    with record(ours, "pattern") as plain:
        ours(x, memory)
    torch.testing.assert_close(biased["pattern"][:, 0], plain["pattern"][:, 0])
    distance = (torch.arange(T)[:, None] - torch.arange(T)).abs()
    reweighted = plain["pattern"][:, 1] * torch.exp(-distance.double())
    torch.testing.assert_close(biased["pattern"][:, 1], reweighted / reweighted.sum(-1, keepdim=True))
    torch.testing.assert_close(biased["pattern"][:, 2], torch.eye(T, dtype=torch.float64).expand(B, T, T))


@pytest.mark.parametrize("masked", [False, True])
def test_bias_may_be_more_precise_than_the_model(masked: bool) -> None:
    ours, x = attention(), torch.randn(B, T, D)
    placed = Positions(bias=Slopes(torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64))).at(T, x)
    visible = causal(T, x) if masked else None
    with record(ours, "pattern") as seen:
        explicit = ours(x, x, visible=visible, placed=placed)
    assert seen["pattern"].dtype == explicit.dtype == torch.float32
    torch.testing.assert_close(ours(x, x, visible=visible, placed=placed), explicit, rtol=0, atol=1e-5)


def test_one_bias_may_serve_all_heads() -> None:
    ours, x, memory = attention(), torch.randn(B, T, D), torch.randn(B, S, D)
    one = Positions(bias=Slopes(torch.tensor([0.7]))).at(S, x)
    each = Positions(bias=Slopes(torch.full((H,), 0.7))).at(S, x)
    assert torch.equal(ours(x, memory, placed=one), ours(x, memory, placed=each))
