import math

import pytest
import torch
from torch import Tensor, nn

from attnlab.attention import Attention, causal
from attnlab.positions import Placed
from attnlab.taps import edit, record
from schemes import every_scheme
from twins import PRECISIONS, B, D, H, K, S, T, attention, attention_twin, randomise


def make(dtype: torch.dtype) -> tuple[Attention, Tensor, Tensor]:
    ours = attention()
    randomise(ours)
    return ours.to(dtype), torch.randn(B, T, D, dtype=dtype), torch.randn(B, S, D, dtype=dtype)


def explicit(
    ours: Attention, x: Tensor, memory: Tensor, visible: Tensor | None, placed: Placed | None
) -> tuple[Tensor, Tensor]:
    """Output and pattern when somebody looks."""
    with record(ours, "pattern") as seen:
        out = ours(x, memory, visible=visible, placed=placed)
    return out, seen["pattern"]


def masks() -> dict[str, Tensor | None]:
    each = torch.rand(B, 1, T, S) < 0.5
    each[..., 0] = True
    return {"all": None, "causal": torch.ones(T, S).tril().bool(), "each example": each}


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize("mask", ["all", "causal", "each example"])
@pytest.mark.parametrize("scheme", ["none", "rotary", "slopes"])
def test_fused_equals_explicit(dtype: torch.dtype, tolerance: float, mask: str, scheme: str) -> None:
    """Head width and model width are not tied to each other."""
    ours = Attention(width=13, heads=H, head_width=4).to(dtype)
    x, memory = torch.randn(B, T, 13, dtype=dtype), torch.randn(B, S, 13, dtype=dtype)
    placed = every_scheme(heads=H, head_width=4)[scheme].at(S, x)
    visible = masks()[mask]
    fused = ours(x, memory, visible=visible, placed=placed)
    seen, pattern = explicit(ours, x, memory, visible, placed)
    assert fused.dtype == seen.dtype == dtype
    assert pattern.shape == (B, H, T, S)
    torch.testing.assert_close(fused, seen, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize("case", ["self", "cross", "causal"])
@pytest.mark.parametrize("looking", [False, True])
def test_parity_with_torch(dtype: torch.dtype, tolerance: float, case: str, looking: bool) -> None:
    ours, x, memory = make(dtype)
    memory = memory if case == "cross" else x
    visible = causal(T, x) if case == "causal" else None
    expected, weights = attention_twin(ours)(
        x,
        memory,
        memory,
        attn_mask=None if visible is None else ~visible,
        average_attn_weights=False,
    )
    out, pattern = explicit(ours, x, memory, visible, None)
    out = out if looking else ours(x, memory, visible=visible)
    torch.testing.assert_close(out, expected, rtol=0, atol=tolerance)
    torch.testing.assert_close(pattern, weights, rtol=0, atol=tolerance)


def test_pattern_rows_sum_to_one() -> None:
    ours, x, memory = make(torch.float64)
    _, pattern = explicit(ours, x, memory, None, None)
    assert pattern.shape == (B, H, T, S)
    assert pattern.min() > 0
    torch.testing.assert_close(pattern.sum(-1), torch.ones(B, H, T, dtype=torch.float64))


def test_causal_pattern_is_zero_above_the_diagonal() -> None:
    ours, x, _ = make(torch.float64)
    _, pattern = explicit(ours, x, x, causal(T, x), None)
    assert torch.equal(pattern.triu(1), torch.zeros_like(pattern))
    assert pattern[:, :, causal(T, x)].min() > 0
    torch.testing.assert_close(pattern.sum(-1), torch.ones(B, H, T, dtype=torch.float64))


def test_causal_by_value() -> None:
    expected = [[True, False, False], [True, True, False], [True, True, True]]
    assert causal(3, torch.empty(0)).tolist() == expected


def test_heads_and_bias_sum_to_the_output() -> None:
    ours, x, memory = make(torch.float64)
    with record(ours, "z") as seen:
        out = ours(x, memory)
    assert seen["z"].shape == (B, H, T, K)
    assert isinstance(ours.output, nn.Linear)
    columns = ours.output.weight.view(D, H, K)
    parts = [seen["z"][:, h] @ columns[:, h].T for h in range(H)]
    torch.testing.assert_close(sum(parts) + ours.output.bias, out, rtol=0, atol=1e-10)


def test_taps_hold_what_the_formulas_say() -> None:
    ours, x, memory = make(torch.float64)
    with record(ours, "*") as seen:
        ours(x, memory)
    q, k, v = (seen[name] for name in "qkv")
    assert (q.shape, k.shape, v.shape) == ((B, H, T, K), (B, H, S, K), (B, H, S, K))
    torch.testing.assert_close(q[1, 2, 3], ours.query(x[1, 3])[2 * K : 3 * K])
    torch.testing.assert_close(v[1, 2, 6], ours.value(memory[1, 6])[2 * K : 3 * K])
    score = q[1, 2, 3] @ k[1, 2, 4] / math.sqrt(K)
    torch.testing.assert_close(seen["scores"][1, 2, 3, 4], score)
    torch.testing.assert_close(seen["pattern"], seen["scores"].softmax(-1))
    torch.testing.assert_close(seen["z"], seen["pattern"] @ v)


@pytest.mark.parametrize("looking", [False, True])
@pytest.mark.parametrize("scheme", ["none", "rotary", "slopes"])
def test_gradients(looking: bool, scheme: str) -> None:
    ours = Attention(width=3, heads=2, head_width=2).double()
    names, weights = zip(*ours.named_parameters(), strict=True)
    placed = every_scheme(heads=2, head_width=2)[scheme].at(3, torch.empty(0))
    visible = torch.tensor([[True, False, True], [True, True, True]])

    def attend(x: Tensor, memory: Tensor, *weights: Tensor) -> Tensor:
        given = dict(zip(names, weights, strict=True))
        options = {"visible": visible, "placed": placed}
        with edit(ours, {"pattern": lambda p: p} if looking else {}):
            return torch.func.functional_call(ours, given, (x, memory), options)

    x, memory = torch.randn(2, 2, 3, dtype=torch.float64), torch.randn(2, 3, 3, dtype=torch.float64)
    inputs = (x.requires_grad_(), memory.requires_grad_(), *weights)
    assert torch.autograd.gradcheck(attend, inputs)


def two_by_two() -> tuple[Attention, Tensor]:
    """One head; queries, keys, values and output are the input itself."""
    ours = Attention(width=2, heads=1, head_width=2).double()
    with torch.no_grad():
        for part in (ours.query, ours.key, ours.value, ours.output):
            assert isinstance(part, nn.Linear)
            part.weight.copy_(torch.eye(2))
            part.bias.zero_()
    return ours, torch.eye(2, dtype=torch.float64)[None]


@pytest.mark.parametrize("looking", [False, True])
def test_two_by_two_by_hand(looking: bool) -> None:
    """Scores are 1/sqrt(2) on the diagonal and 0 beside it, so the larger weight is 1 / (1 + e^-0.7071)."""
    ours, x = two_by_two()
    large, small = 0.6697615493266569, 0.3302384506733431
    for visible, expected in (
        (None, [[large, small], [small, large]]),
        (causal(2, x), [[1.0, 0.0], [small, large]]),
    ):
        out = explicit(ours, x, x, visible, None)[0] if looking else ours(x, x, visible=visible)
        torch.testing.assert_close(out[0], torch.tensor(expected, dtype=torch.float64))
