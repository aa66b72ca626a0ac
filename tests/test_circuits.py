from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from attnlab.analysis.prune.refit import choose_values, concatenated_z
from attnlab.attention import Attention

WIDTH, HEADS, HEAD_WIDTH, ROWS, LENGTH = 11, 3, 2, 97, 5
RIDGE = 1e-9


@pytest.fixture
def attention() -> Attention:
    torch.manual_seed(7)
    return Attention(width=WIDTH, heads=HEADS, head_width=HEAD_WIDTH).requires_grad_(False)


def made(attention: Attention, seen: Tensor) -> Tensor:
    """What the attention adds, without any mean."""
    out: Tensor = attention.output(concatenated_z(attention, seen))
    return (out - out.mean(dim=(0, 1))).flatten(0, 1)


def error(attention: Attention, seen: Tensor, target: Tensor) -> float:
    wanted = target - target.mean(dim=0)
    return float((made(attention, seen) - wanted).square().sum())


def test_z_of_what_heads_see_is_their_z(attention: Attention) -> None:
    memory = torch.randn(ROWS, 7, WIDTH)
    pattern = torch.rand(ROWS, HEADS, LENGTH, 7).softmax(dim=-1)
    v = attention.keys_values(memory)[1]
    seen = (pattern @ memory[:, None]).transpose(0, 1)
    expected = (pattern @ v).transpose(1, 2).flatten(2)
    assert torch.allclose(concatenated_z(attention, seen), expected, atol=1e-5)


def test_maps_that_heads_can_write_are_found(attention: Attention) -> None:
    """Each head's map has the rank of a head, so nothing is left over."""
    seen = torch.randn(HEADS, ROWS, LENGTH, WIDTH)
    maps = torch.randn(HEADS, WIDTH, HEAD_WIDTH) @ torch.randn(HEADS, HEAD_WIDTH, WIDTH)
    target = torch.einsum("hbtd,hde->bte", seen, maps).flatten(0, 1)
    begin = error(attention, seen, target)
    for _ in range(40):
        choose_values(attention, seen.flatten(1, 2), target, ridge=RIDGE)
    assert error(attention, seen, target) < 1e-3 * begin


def test_one_head_gets_the_best_map_of_its_rank() -> None:
    """With features of equal variance the best map is the cut singular value decomposition."""
    torch.manual_seed(3)
    attention = Attention(width=WIDTH, heads=1, head_width=HEAD_WIDTH).requires_grad_(False)
    plain = torch.randn(ROWS * LENGTH, WIDTH).double()
    features = torch.linalg.qr(plain - plain.mean(dim=0))[0]
    full = torch.randn(WIDTH, WIDTH).double()
    target = (features @ full).float()
    seen = features.float().view(1, ROWS, LENGTH, WIDTH)
    choose_values(attention, seen.flatten(1, 2), target, ridge=RIDGE)
    left = torch.linalg.svdvals(full)[HEAD_WIDTH:].square().sum()
    assert error(attention, seen, target) == pytest.approx(float(left), rel=1e-3)


def test_it_never_gets_worse(attention: Attention) -> None:
    seen = torch.randn(HEADS, ROWS, LENGTH, WIDTH)
    target = torch.randn(ROWS * LENGTH, WIDTH)
    errors = [error(attention, seen, target)]
    for _ in range(5):
        choose_values(attention, seen.flatten(1, 2), target, ridge=RIDGE)
        errors.append(error(attention, seen, target))
    assert all(after <= before * (1 + 1e-5) for before, after in pairwise(errors))
    assert errors[1] < 0.99 * errors[0]


def test_features_without_variance_do_no_harm(attention: Attention) -> None:
    seen = torch.ones(HEADS, ROWS, LENGTH, WIDTH)
    choose_values(attention, seen.flatten(1, 2), torch.randn(ROWS * LENGTH, WIDTH), ridge=1e-3)
    assert isinstance(attention.output, nn.Linear)
    assert all(weight.isfinite().all() for weight in attention.parameters())
