"""Windows, log scaling, padding and parts: fused, in parts and explicit attention are the same function."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attnlab import attention
from attnlab.attention import Attention, AttentionMask, causal
from attnlab.positions import Placed, Positions, build_positions
from attnlab.specs import Alibi, Interpolated, NoPositions, PositionSpec, Randomised, Relative, Rotary
from attnlab.taps import edit, record
from schemes import Slopes
from twins import randomise

B, T, H, K = 3, 11, 3, 4
D = H * K
SPECS: list[PositionSpec] = [
    NoPositions(),
    Rotary(base=50.0),
    Alibi(),
    Relative(buckets=6, distance=5, scale=1.0),
    Randomised(inner="rotary", limit=37),
    Interpolated(inner="rotary", trained=5),
]
LENGTHS = torch.tensor([11, 7, 2])
each_scheme = pytest.mark.parametrize("spec", SPECS, ids=[spec.kind for spec in SPECS])


@contextmanager
def in_parts(rows: int) -> Iterator[None]:
    """Every part is small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "ROWS", rows)
        patch.setattr(attention, "ROOM", rows * B * H * T)
        yield


def make(spec: PositionSpec, *, window: int, log_scale: int) -> tuple[Attention, Positions, Tensor]:
    ours = Attention(width=D, heads=H, head_width=K, window=window, log_scale=log_scale)
    randomise(ours)
    positions = build_positions(spec, width=D, head_width=K)
    return ours.double(), positions.double().eval(), torch.randn(B, T, D, dtype=torch.float64)


def masks() -> dict[str, Tensor | None]:
    padded = (torch.arange(T) < LENGTHS[:, None])[:, None, None]
    return {"all": None, "padding": padded, "causal": causal(T, padded), "both": padded & causal(T, padded)}


def by_definition(
    ours: Attention, x: Tensor, visible: Tensor | None, placed: Placed, window: int, log_scale: int
) -> Tensor:
    """One query of one head at a time."""
    q, (k, v) = ours.queries(x, placed=placed), ours.keys_values(x, placed=placed)
    bias = placed.score_bias(slice(T), slice(T))
    z = torch.zeros_like(q)
    for b, h, i in product(range(B), range(H), range(T)):
        seen = [
            j
            for j in range(T)
            if (not window or abs(i - j) <= window)
            and (visible is None or visible.expand(B, H, T, T)[b, h, i, j])
        ]
        if not seen:
            continue
        factor = math.log(len(seen)) / math.log(log_scale) if log_scale else 1.0
        scores = k[b, h, seen] @ q[b, h, i] / math.sqrt(K)
        if bias is not None:
            scores = scores + bias[0, h, i, seen]
        z[b, h, i] = (factor * scores).softmax(0) @ v[b, h, seen]
    return ours.output(z.transpose(1, 2).flatten(2))


@each_scheme
@pytest.mark.parametrize("mask", ["all", "padding", "causal", "both"])
@pytest.mark.parametrize(("window", "log_scale"), [(0, 0), (0, 5), (1, 0), (2, 3), (10, 7)])
def test_fused_parts_and_explicit_are_the_definition(
    spec: PositionSpec, mask: str, window: int, log_scale: int
) -> None:
    ours, positions, x = make(spec, window=window, log_scale=log_scale)
    visible, placed = masks()[mask], positions.at(T, x, LENGTHS)
    expected = by_definition(ours, x, visible, placed, window, log_scale)
    fused = ours(x, x, visible=visible, placed=placed)
    with in_parts(2):
        parts = ours(x, x, visible=visible, placed=placed)
        with torch.no_grad():
            filled = ours(x, x, visible=visible, placed=placed)
    with record(ours, "pattern") as seen:
        explicit = ours(x, x, visible=visible, placed=placed)
    for found in (fused, parts, filled, explicit):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    sums = seen["pattern"].sum(-1)
    torch.testing.assert_close(sums, sums.round(), rtol=0, atol=1e-12)
    if window:
        far = (torch.arange(T)[:, None] - torch.arange(T)).abs() > window
        assert not seen["pattern"][..., far].any()


@each_scheme
@pytest.mark.parametrize(("window", "log_scale"), [(0, 5), (2, 0)])
def test_gradients_agree(spec: PositionSpec, window: int, log_scale: int) -> None:
    """Also where padding sees nothing at all, and for the trained biases."""
    ours, positions, x = make(spec, window=window, log_scale=log_scale)
    weights = [*ours.parameters(), *positions.parameters(), x.requires_grad_()]

    def gradients() -> list[Tensor]:
        out = ours(x, x, visible=masks()["padding"], placed=positions.at(T, x, LENGTHS))
        return list(torch.autograd.grad(out.sin().sum(), weights))

    fused = gradients()
    with in_parts(3):
        parts = gradients()
    with edit(ours, {"scores": lambda scores: scores}):
        explicit = gradients()
    assert all(each.isfinite().all() and each.any() for each in fused)
    for found in (parts, explicit):
        for mine, yours in zip(found, fused, strict=True):
            torch.testing.assert_close(mine, yours, rtol=0, atol=1e-11)


@pytest.mark.parametrize("looking", [False, True])
def test_gradients_by_central_differences(looking: bool) -> None:
    ours = Attention(width=4, heads=2, head_width=2, window=1, log_scale=3).double()
    positions = build_positions(Relative(buckets=4, distance=2, scale=1.0), width=4, head_width=2).double()
    table = positions.get_parameter("bias.table")
    visible = torch.tensor([[True, True, True, False, False]])[:, None, None]

    def attend(x: Tensor, *_: Tensor) -> Tensor:
        """Weights are moved where they are."""
        with edit(ours, {"pattern": lambda p: p} if looking else {}):
            return ours(x, x, visible=visible, placed=positions.at(5, x))

    x = torch.randn(1, 5, 4, dtype=torch.float64, requires_grad=True)
    with in_parts(1):
        assert torch.autograd.gradcheck(attend, (x, table, *ours.parameters()))


@pytest.mark.parametrize("looking", [False, True])
def test_a_query_without_keys_gets_nothing(looking: bool) -> None:
    ours, _, x = make(NoPositions(), window=1, log_scale=0)
    with edit(ours, {"pattern": lambda p: p} if looking else {}), record(ours, "z") as seen:
        ours(x, x, visible=masks()["padding"])
    blind = torch.arange(T) > LENGTHS[:, None]
    assert not seen["z"].transpose(1, 2)[blind].any()
    assert seen["z"].transpose(1, 2)[~blind].any(-1).all()


def test_log_scale_by_hand() -> None:
    """Uniform keys but one, whose score is 1: its weight is e^c / (e^c + n - 1) with c = log n / log 4."""
    ours = Attention(width=1, heads=1, head_width=1, log_scale=4).double()
    with torch.no_grad():
        for part in (ours.query, ours.key):
            part.weight.fill_(1.0)
            part.bias.zero_()
    for n in (2, 4, 101):
        memory = torch.zeros(1, n, 1, dtype=torch.float64)
        memory[0, 1] = 1
        with record(ours, "pattern") as seen:
            ours(memory[:, 1:2], memory)
        high = math.exp(math.log(n) / math.log(4))
        assert seen["pattern"][0, 0, 0, 1].item() == pytest.approx(high / (high + n - 1), abs=1e-12)


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers how many numbers the largest tensor held that any operation gave."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        for each in given if isinstance(given, tuple) else (given,):
            if isinstance(each, Tensor):
                self.numbers = max(self.numbers, each.numel())
        return given


@each_scheme
@pytest.mark.parametrize(("window", "log_scale"), [(0, 0), (0, 5), (3, 0)])
@pytest.mark.parametrize("looking", [False, True])
def test_nobody_looking_no_matrix_of_queries_and_keys_is_formed(
    spec: PositionSpec, window: int, log_scale: int, looking: bool
) -> None:
    long = 509
    ours, positions, _ = make(spec, window=window, log_scale=log_scale)
    x = torch.randn(1, long, D, dtype=torch.float64)
    visible = (torch.arange(long) < 499)[None, None, None]
    if isinstance(spec, Randomised):
        positions = build_positions(replace(spec, limit=long), width=D, head_width=K).eval()
    with (
        edit(ours, {"pattern": lambda p: p} if looking else {}),
        pytest.MonkeyPatch.context() as patch,
        torch.no_grad(),
        Largest() as largest,  # type: ignore[no-untyped-call]
    ):
        patch.setattr(attention, "ROOM", 13 * H * long)
        ours(x, x, visible=visible, placed=positions.at(long, x, torch.tensor([499])))
    assert (largest.numbers >= H * long * long) is looking
    assert (largest.numbers < long * long / 10) is not looking


@pytest.mark.parametrize("spec", [Alibi(), Relative(buckets=6, distance=5, scale=1.0)], ids=["alibi", "t5"])
@pytest.mark.parametrize(("log_scale", "own"), [(0, None), (5, None), (0, (2, 0))])
@pytest.mark.parametrize("start", [0, 8])
def test_windows_on_one_row_of_offsets_are_the_bias_of_every_pair(
    spec: PositionSpec, log_scale: int, own: tuple[int, ...] | None, start: int
) -> None:
    _, positions, x = make(spec, window=0, log_scale=0)
    heads = H if own is None else len(own)
    ours = Attention(width=D, heads=heads, head_width=K, log_scale=log_scale, own=own).double()
    placed = positions.at(T, x)
    q, (k, v) = ours.queries(x[:, start:], placed=placed), ours.keys_values(x, placed=placed)
    with in_parts(2):
        parts = ours.attend(q, k, v, placed=placed, start=start)  # gradients are wanted: in parts
        with torch.no_grad():
            row = AttentionMask(None, placed, start, 0, own).offset_bias(T - start, T)
            windows = ours.attend(q, k, v, placed=placed, start=start)
    torch.testing.assert_close(windows, parts.detach(), rtol=0, atol=1e-12)
    assert row is not None
    bias = AttentionMask(None, placed, start, 0, own).bias(slice(0, T - start), slice(0, T))
    assert bias is not None
    assert torch.equal(row.unfold(2, T, 1).flip(-1), bias)


def test_one_row_serves_only_where_the_offset_is_all_that_counts() -> None:
    _, positions, x = make(Alibi(), window=0, log_scale=0)
    placed = positions.at(T, x)
    assert AttentionMask(None, placed, 0, 0, None).offset_bias(T, T) is not None
    assert AttentionMask(causal(T, x), placed, 0, 0, None).offset_bias(T, T) is None
    assert AttentionMask(None, placed, 0, 2, None).offset_bias(T, T) is None
    assert AttentionMask(None, None, 0, 0, None).offset_bias(T, T) is None
    assert AttentionMask(None, replace(placed, counted=False), 0, 0, None).offset_bias(T, T) is None
    any_pair = Positions(bias=Slopes(torch.tensor([0.5]))).at(T, x)
    assert AttentionMask(None, any_pair, 0, 0, None).offset_bias(T, T) is None


def test_parts_of_a_window_hold_only_the_band() -> None:
    looking = AttentionMask(None, None, 0, 2, None)
    with in_parts(5):
        parts = list(looking.parts((B, H, T, T)))
    assert parts == [
        (slice(0, 5), slice(0, 7)),
        (slice(5, 10), slice(3, 11)),
        (slice(10, 11), slice(8, 11)),
    ]


def test_parts_of_a_bias_keep_to_the_room() -> None:
    biased = build_positions(Alibi(), width=D, head_width=K).at(16_384, torch.empty(0))
    parts = list(AttentionMask(None, biased, 0, 0, None).parts((2, 4, 16_384, 16_384)))
    assert all(2 * 4 * (rows.stop - rows.start) * 16_384 <= attention.ROOM for rows, _ in parts)
    assert [rows.start for rows, _ in parts[1:]] == [rows.stop for rows, _ in parts[:-1]]
    assert parts[-1][0].stop == 16_384


def test_without_window_and_bias_there_is_one_part() -> None:
    turned = build_positions(Rotary(), width=D, head_width=K).at(16_384, torch.empty(0))
    for placed in (None, turned):
        parts = list(AttentionMask(None, placed, 0, 0, None).parts((2, 4, 16_384, 16_384)))
        assert parts == [(slice(0, 16_384), slice(0, 16_384))]


@pytest.mark.parametrize("window", [0, 2])
def test_a_later_start_sees_what_the_last_queries_see(window: int) -> None:
    ours, positions, x = make(Alibi(), window=window, log_scale=3)
    placed = positions.at(T, x)
    whole = ours(x, x, visible=causal(T, x), placed=placed)
    k, v = ours.keys_values(x, placed=placed)
    q = ours.queries(x[:, 8:], placed=placed, start=8)
    last = ours.attend(q, k, v, visible=causal(T, x)[8:], placed=placed, start=8)
    torch.testing.assert_close(last, whole[:, 8:], rtol=0, atol=1e-12)


def test_heads_that_are_left_keep_their_bias() -> None:
    ours, positions, x = make(Alibi(), window=0, log_scale=0)
    placed = positions.at(T, x)
    left = Attention(width=D, heads=2, head_width=K, own=(0, 2)).double()
    rows = [*range(K), *range(2 * K, 3 * K)]
    with torch.no_grad():
        for mine, whole in ((left.query, ours.query), (left.key, ours.key), (left.value, ours.value)):
            mine.weight.copy_(whole.weight[rows])
            mine.bias.copy_(whole.bias[rows])
    with record(ours, "z") as before, record(left, "z") as after:
        ours(x, x, placed=placed)
        left(x, x, placed=placed)
    torch.testing.assert_close(after["z"], before["z"][:, [0, 2]], rtol=0, atol=1e-12)
