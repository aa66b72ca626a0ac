"""Weight on the one fall of a list, of heads whose patterns are known."""

import pytest
import torch

from attnlab.model import Model
from attnlab.models import attentions, build_model
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.exchanges import Exchanges, fall_weights, measure_falls
from attnlab.specs import NoPositions, Pooling, TokensModel
from attnlab.taps import edit


def built(pooling: Pooling = "mean", window: int = 0) -> Model:
    torch.manual_seed(0)
    spec = TokensModel(
        width=8, heads=2, layers=2, hidden=9, positions=NoPositions(), pooling=pooling, window=window
    )
    return build_model(spec, vocabulary=2, tokens=Sorting.tokens).eval()


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_planted_head_is_found(pooling: Pooling) -> None:
    """One head of the second layer has half of its weight on the fall, all others look everywhere alike."""
    lists = torch.tensor([[3, 5, 9, 7, 11], [2, 1, 4, 4, 8], [1, 2, 3, 5, 4]])
    falls, front = torch.tensor([2, 0, 3]), int(pooling == "cls")
    model = built(pooling)

    def uniform(pattern: torch.Tensor) -> torch.Tensor:
        return torch.full_like(pattern, 1 / pattern.shape[-1])

    def planted(pattern: torch.Tensor) -> torch.Tensor:
        pattern = uniform(pattern).clone()
        pattern[torch.arange(3), 1, :, falls + front] = 0.5
        return pattern

    with edit(model, {"encoder.0.self.pattern": uniform, "encoder.1.self.pattern": planted}):
        found = fall_weights(model, lists)
    assert list(found) == [f"{path}.{head}" for path in attentions(model) for head in (0, 1)]
    assert torch.equal(found.pop("encoder.1.self.1"), torch.full((3,), 0.5, dtype=torch.float64))
    for weights in found.values():
        assert weights.numpy() == pytest.approx(1 / (5 + front))


def test_a_window_cannot_find_it_in_a_long_list() -> None:
    found = measure_falls(Sorting(), built(window=2), Exchanges((7, 61, 127), lists=5))
    for row in found.rows[1:]:
        assert 0 < row.weight == row.heads[row.head] < 5 / row.length
    assert found == measure_falls(Sorting(), built(window=2), Exchanges((7, 61, 127), lists=5))
