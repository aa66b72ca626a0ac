"""Pools by value, against a loop over tokens, and blind to padding."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnlab.pooling import (
    AttentionPool,
    BoundaryPool,
    FirstPool,
    LastPool,
    LowestPool,
    MaxPool,
    MeanPool,
    MinPool,
    Pool,
)

WIDTH = 3
TOKENS = torch.tensor([[1.0, 5.0], [3.0, -1.0], [2.0, 2.0]])
MASK = torch.tensor(
    [[True, True, True, False, False], [True, True, True, True, True], [True, True, False, False, False]]
)

POOLS: dict[str, Callable[[], Pool]] = {
    "first": FirstPool,
    "last": LastPool,
    "mean": MeanPool,
    "min": MinPool,
    "max": MaxPool,
    "attention": lambda: AttentionPool(width=WIDTH),
    "boundary": lambda: BoundaryPool(width=WIDTH),
    "lowest": lambda: LowestPool(score=nn.Linear(WIDTH, 1)),
}


def by_loop(pool: Pool, tokens: list[Tensor]) -> Tensor:
    """What the formulas say of the tokens of one list."""
    match pool:
        case FirstPool():
            return tokens[0]
        case LastPool():
            return tokens[-1]
        case MeanPool():
            total = torch.zeros_like(tokens[0])
            for token in tokens:
                total = total + token
            return total / len(tokens)
        case MinPool():
            return torch.tensor([min(token[d].item() for token in tokens) for d in range(WIDTH)])
        case MaxPool():
            return torch.tensor([max(token[d].item() for token in tokens) for d in range(WIDTH)])
        case AttentionPool():
            weights = [torch.exp(pool.score(token)) for token in tokens]
            return sum(w * t for w, t in zip(weights, tokens, strict=True)) / sum(weights)  # type: ignore[return-value]
        case LowestPool():
            return torch.tensor([min(pool.score(token).item() for token in tokens)])
        case BoundaryPool():
            steps = [tokens[t + 1] - tokens[t] for t in range(len(tokens) - 1)]
            parts = (
                by_loop(MinPool(), tokens),
                by_loop(MinPool(), steps),
                by_loop(MeanPool(), steps),
                tokens[0],
                tokens[-1],
            )
            joined: Tensor = pool.join(torch.cat(parts))
            return joined
    raise AssertionError(pool)


@pytest.mark.parametrize(
    ("pool", "value"),
    [
        (FirstPool(), [1.0, 5.0]),
        (LastPool(), [2.0, 2.0]),
        (MeanPool(), [2.0, 2.0]),
        (MinPool(), [1.0, -1.0]),
        (MaxPool(), [3.0, 5.0]),
    ],
)
def test_plain_pools_by_value(pool: Pool, value: list[float]) -> None:
    assert pool(TOKENS[None]).tolist() == [value]


def test_attention_pool_by_value() -> None:
    pool = AttentionPool(width=2)
    nn.init.zeros_(pool.score.weight)
    assert torch.allclose(pool(TOKENS[None]), torch.tensor([[2.0, 2.0]]))
    pool.score.weight.data = torch.tensor([[100.0, 0.0]])
    assert torch.allclose(pool(TOKENS[None]), torch.tensor([[3.0, -1.0]]))


def test_lowest_pool_by_value() -> None:
    score = nn.Linear(2, 1)
    score.weight.data, score.bias.data = torch.tensor([[1.0, 1.0]]), torch.tensor([0.5])
    assert LowestPool(score=score)(TOKENS[None]).tolist() == [[2.5]]  # 3 - 1 + 0.5


def test_boundary_pool_by_value() -> None:
    pool = BoundaryPool(width=2)
    nn.init.zeros_(pool.join.bias)
    for part, value in enumerate(([1.0, -1.0], [-1.0, -6.0], [0.5, -1.5], [1.0, 5.0], [2.0, 2.0])):
        pool.join.weight.data = torch.zeros(2, 10)
        pool.join.weight.data[:, 2 * part : 2 * part + 2] = torch.eye(2)
        assert pool(TOKENS[None]).tolist() == [value]


@pytest.mark.parametrize("name", POOLS)
def test_pools_equal_a_loop_over_tokens(name: str) -> None:
    pool, x = POOLS[name](), torch.randn(3, 5, WIDTH)
    expected = [by_loop(pool, list(row[kept])) for row, kept in zip(x, MASK, strict=True)]
    assert torch.allclose(pool(x, MASK), torch.stack(expected), atol=1e-6)
    whole = torch.stack([by_loop(pool, list(row)) for row in x])
    assert torch.allclose(pool(x), whole, atol=1e-6)


@pytest.mark.parametrize("name", POOLS)
def test_what_stands_in_padding_changes_nothing(name: str) -> None:
    pool, x = POOLS[name](), torch.randn(3, 5, WIDTH)
    wild = torch.where(MASK[..., None], x, torch.full_like(x, 1e9))
    assert torch.equal(pool(x, MASK), pool(wild, MASK))


@pytest.mark.parametrize("name", POOLS)
def test_gradients_reach_tokens_and_not_padding(name: str) -> None:
    pool, x = POOLS[name](), torch.randn(3, 5, WIDTH, requires_grad=True)
    pool(x, MASK).sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert (x.grad[~MASK] == 0).all()
    assert (x.grad.abs().sum(dim=(1, 2)) > 0).all()


def test_what_a_pool_takes_of_each_token() -> None:
    x = torch.stack((TOKENS, TOKENS.flip(0)))
    mask = torch.tensor([[True, True, True], [True, True, False]])
    assert FirstPool().weights(x, mask).tolist() == [[1, 0, 0], [1, 0, 0]]
    assert LastPool().weights(x, mask).tolist() == [[0, 0, 1], [0, 1, 0]]
    assert LastPool().weights(x).tolist() == [[0, 0, 1], [0, 0, 1]]
    assert torch.allclose(MeanPool().weights(x, mask), torch.tensor([[1 / 3] * 3, [0.5, 0.5, 0.0]]))
    second = nn.Linear(2, 1, bias=False)
    nn.init.constant_(second.weight[:, 0], 0.0)
    nn.init.constant_(second.weight[:, 1], 1.0)
    assert LowestPool(score=second).weights(x, mask).tolist() == [[0, 1, 0], [0, 1, 0]]
