import math

import pytest
import torch
from torch import Tensor

from attnlab.model import Model
from attnlab.sets import Examples
from attnlab.training.measuring import cross_entropy, measure, right

# Three examples of two targets over two classes; the odds are 3 to 1, so a hit costs ln 4/3, a miss ln 4.
ODDS = math.log(3)
LOGITS = torch.tensor([[[ODDS, 0], [0, ODDS]], [[ODDS, 0], [ODDS, 0]], [[0, ODDS], [ODDS, 0]]])
TARGETS = torch.tensor([[0, 1], [0, 1], [0, 1]])
HIT, MISS = math.log(4 / 3), math.log(4)


class Answers(Model):
    """Gives the logits it is asked for by number, doubled while training."""

    def forward(self, index: Tensor) -> Tensor:
        return LOGITS[index] * (2 if self.training else 1)


EXAMPLES = Examples((torch.arange(3),), TARGETS)


def test_cross_entropy_is_the_mean_over_every_target() -> None:
    assert cross_entropy(LOGITS, TARGETS).item() == pytest.approx((3 * HIT + 3 * MISS) / 6)


def test_cross_entropy_with_smoothing() -> None:
    """A fifth of the weight is spread over both classes: nine tenths on the target, one on the other."""
    loss = cross_entropy(LOGITS[:1], TARGETS[:1], smoothing=0.2).item()
    assert loss == pytest.approx(0.9 * HIT + 0.1 * MISS)


def test_cross_entropy_of_one_target_an_example() -> None:
    assert cross_entropy(LOGITS[:, 0], TARGETS[:, 0]).item() == pytest.approx((2 * HIT + MISS) / 3)


def test_right() -> None:
    assert right(LOGITS, TARGETS).tolist() == [[True, True], [True, False], [False, False]]
    assert right(LOGITS[:, 0], TARGETS[:, 0]).tolist() == [True, True, False]


@pytest.mark.parametrize("batch", [1, 2, 3, 512])
def test_measure_does_not_depend_on_the_batch(batch: int) -> None:
    measured = measure(Answers(), EXAMPLES, batch=batch)
    assert measured.loss == pytest.approx((HIT + MISS) / 2)
    assert measured.token_accuracy == 3 / 6
    assert measured.exact_match == 1 / 3


@pytest.mark.parametrize("training", [True, False])
def test_measure_leaves_the_mode_as_it_was(training: bool) -> None:
    model = Answers().train(training)
    assert measure(model, EXAMPLES).loss == pytest.approx((HIT + MISS) / 2)
    assert model.training is training


def test_measure_one_target_an_example() -> None:
    class First(Model):
        def forward(self, index: Tensor) -> Tensor:
            return LOGITS[index, 0]

    measured = measure(First(), Examples((torch.arange(3),), TARGETS[:, 0]))
    assert measured.token_accuracy == measured.exact_match == 2 / 3
