import pytest
import torch
from torch import nn

from attnlab.attention import Attention, causal
from attnlab.blocks import BlockCache, DecoderBlock, FeedForward, PostNorm, PreNorm
from attnlab.positions import Positions
from attnlab.taps import record
from schemes import NAMES, every_scheme
from twins import (
    HIDDEN,
    PRECISIONS,
    B,
    D,
    H,
    K,
    S,
    T,
    decoder_block,
    decoder_twin,
    encoder_block,
    encoder_twin,
    randomise,
)

every_kind = pytest.mark.parametrize(
    ("norm_first", "activation"), [(n, a) for n in (True, False) for a in ("relu", "gelu")]
)
every_precision = pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)


@every_precision
@every_kind
def test_encoder_parity(norm_first: bool, activation: str, dtype: torch.dtype, tolerance: float) -> None:
    ours = encoder_block(norm_first, activation, dtype)
    theirs = encoder_twin(ours, norm_first=norm_first, activation=activation)
    x = torch.randn(B, T, D, dtype=dtype)
    for visible in (None, causal(T, x)):
        expected = theirs(x, src_mask=None if visible is None else ~visible)
        out = ours(x, placed=Positions().at(T, x), visible=visible)
        torch.testing.assert_close(out, expected, rtol=0, atol=tolerance)


@every_precision
@every_kind
def test_decoder_parity(norm_first: bool, activation: str, dtype: torch.dtype, tolerance: float) -> None:
    ours = decoder_block(norm_first, activation, dtype)
    theirs = decoder_twin(ours, norm_first=norm_first, activation=activation)
    x, memory = torch.randn(B, T, D, dtype=dtype), torch.randn(B, S, D, dtype=dtype)
    expected = theirs(x, memory, tgt_mask=~causal(T, x))
    out = ours(x, memory, placed=Positions().at(T, x), visible=causal(T, x))
    torch.testing.assert_close(out, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("scheme", [*NAMES, "slopes"])
def test_cached_step_equals_forward_token_by_token(norm_first: bool, scheme: str) -> None:
    ours = _with_even_heads(decoder_block(norm_first, "relu", torch.float64))
    x = torch.randn(B, T, D, dtype=torch.float64)
    memory = torch.randn(B, S, D, dtype=torch.float64)
    placed = every_scheme(heads=H, head_width=4)[scheme].at(T, x)
    whole = ours(x, memory, placed=placed, visible=causal(T, x))
    cache = ours.open_cache(memory)
    for t in range(T):
        assert cache.length == t
        one = ours.step(x[:, t : t + 1], cache, placed=placed)
        torch.testing.assert_close(one, whole[:, t : t + 1], rtol=0, atol=1e-10)


def _with_even_heads(block: DecoderBlock) -> DecoderBlock:
    """Rotary positions turn pairs, so heads get the width 4 instead of 5."""
    block.self = Attention(width=D, heads=H, head_width=4).double()
    randomise(block.self)
    return block


def test_cache_keeps_keys_and_values_in_order() -> None:
    k, v = torch.randn(B, H, T, K), torch.randn(B, H, T, K)
    cache = BlockCache(memory=(k, v))
    assert cache.length == 0
    cache.extend(k[:, :, :2], v[:, :, :2])
    all_k, all_v = cache.extend(k[:, :, 2:], v[:, :, 2:])
    assert cache.length == T
    assert torch.equal(all_k, k)
    assert torch.equal(all_v, v)


def test_residuals_by_formula() -> None:
    x = torch.randn(B, T, D)
    pre, post = PreNorm(norm=nn.LayerNorm(D), dropout=0.0), PostNorm(norm=nn.LayerNorm(D), dropout=0.0)
    randomise(pre)
    randomise(post)
    with record(pre, "out") as seen:
        torch.testing.assert_close(pre(x, torch.sin), x + torch.sin(pre.norm(x)))
    torch.testing.assert_close(seen["out"], x + torch.sin(pre.norm(x)))
    with record(post, "out") as seen:
        torch.testing.assert_close(post(x, torch.sin), post.norm(x + torch.sin(x)))
    torch.testing.assert_close(seen["out"], post.norm(x + torch.sin(x)))


@pytest.mark.parametrize("kind", [PreNorm, PostNorm])
def test_dropout_falls_on_the_sublayer_not_on_the_stream(kind: type[PreNorm] | type[PostNorm]) -> None:
    residual = kind(norm=nn.LayerNorm(D), dropout=0.5)
    x = torch.randn(B, T, D)
    dropped = residual.train()(x, lambda y: torch.zeros_like(y))
    assert torch.equal(dropped, residual.eval()(x, lambda y: torch.zeros_like(y)))
    ones = residual.train()(torch.zeros(B, T, D), lambda y: torch.ones_like(y))
    if kind is PreNorm:
        assert sorted(set(ones.flatten().tolist())) == [0.0, 2.0]


def test_feed_forward_by_formula() -> None:
    feed = FeedForward(width=D, hidden=HIDDEN, activation=nn.ReLU())
    x = torch.randn(B, T, D)
    with record(feed, "hidden") as seen:
        out = feed(x)
    hidden = (x @ feed.up.weight.T + feed.up.bias).clamp(min=0)
    assert seen["hidden"].shape == (B, T, HIDDEN)
    torch.testing.assert_close(seen["hidden"], hidden)
    torch.testing.assert_close(out, hidden @ feed.down.weight.T + feed.down.bias)
