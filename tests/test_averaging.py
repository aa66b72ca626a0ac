import pytest
import torch
from torch import nn

from attnlab.training.optimisers import WeightAverage


def set_weights(model: nn.Linear, value: float) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)


def test_average_by_hand() -> None:
    """Decays after 1, 2 and 80 updates: 2/11, 3/12, and then the limit of 0.9."""
    model = nn.Linear(3, 2)
    set_weights(model, 0.0)
    average = WeightAverage(model, 0.9)
    expected = 0.0
    for updates, value, decay in ((1, 11.0, 2 / 11), (2, 5.0, 3 / 12), (80, -7.0, 0.9)):
        set_weights(model, value)
        average.update(updates)
        expected = decay * expected + (1 - decay) * value
        for parameter in average.model.parameters():
            torch.testing.assert_close(parameter, torch.full_like(parameter, expected))
    assert expected == pytest.approx(0.9 * (0.25 * 9 + 0.75 * 5) - 0.7)


def test_a_small_decay_holds_from_the_start() -> None:
    model = nn.Linear(3, 2)
    set_weights(model, 0.0)
    average = WeightAverage(model, 0.1)
    set_weights(model, 10.0)
    average.update(1)
    torch.testing.assert_close(next(average.model.parameters()), torch.full((2, 3), 9.0))


def test_average_is_a_copy_that_is_not_trained() -> None:
    model = nn.Linear(3, 2)
    average = WeightAverage(model, 0.9)
    start = average.model.state_dict()["weight"].clone()
    set_weights(model, 5.0)
    assert torch.equal(average.model.state_dict()["weight"], start)
    assert not any(parameter.requires_grad for parameter in average.model.parameters())
    assert all(parameter.requires_grad for parameter in model.parameters())
    average.update(1)
    assert torch.equal(model.weight, torch.full((2, 3), 5.0))
