"""The identity, kept for ever: greedy decoding of an example is exactly right if and only if every
argmax is right when the true tokens are fed. Teacher-forced exact match therefore *is* exact match.
"""

from typing import Literal

import pytest
import torch
from torch import Tensor

from attnlab.models import Seq2Seq, build_model
from attnlab.problems.addition import Addition
from attnlab.specs import Constant, Learned, PositionSpec, Seq2SeqModel, Spec, Training
from attnlab.training.measuring import measure, right
from attnlab.training.trainer import Trainer
from schemes import NAMES, SPECS

B, S, T, V, START = 23, 7, 5, 11, 0


def both_ways(model: Seq2Seq, source: Tensor, target: Tensor, start: int) -> tuple[Tensor, Tensor]:
    """Which examples greedy decoding gets right, and which teacher forcing does."""
    shifted = torch.cat((torch.full_like(target[:, :1], start), target[:, :-1]), dim=1)
    with torch.no_grad():
        forced = right(model(source, shifted), target).all(dim=1)
    decoded = model.greedy(source, start=start, length=target.shape[1])
    return (decoded == target).all(dim=1), forced


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", SPECS, ids=NAMES)
def test_identity_on_untrained_models(positions: PositionSpec, norm: Literal["pre", "post"]) -> None:
    """Targets are what the model says, with one token of every other example replaced."""
    spec = Seq2SeqModel(width=12, heads=3, hidden=13, positions=positions, norm=norm)
    model = build_model(spec, vocabulary=V).double().eval()
    source = torch.randint(V, (B, S))
    target = model.greedy(source, start=START, length=T)
    wrong = torch.arange(0, B, 2)
    place = torch.randint(T, (len(wrong),))
    target[wrong, place] = (target[wrong, place] + 1) % V
    greedy, forced = both_ways(model, source, target, START)
    assert torch.equal(greedy, forced)
    assert greedy.tolist() == [example % 2 == 1 for example in range(B)]


def test_identity_on_untrained_models_and_random_targets() -> None:
    """Two tokens in two places: about a quarter of random targets is right by chance."""
    model = build_model(Seq2SeqModel(width=12, heads=3, hidden=13), vocabulary=2).double().eval()
    greedy, forced = both_ways(model, torch.randint(2, (101, S)), torch.randint(2, (101, 2)), 0)
    assert torch.equal(greedy, forced)
    assert 0 < greedy.sum() < 101


@pytest.mark.parametrize("order", ["most", "least"])
def test_identity_on_a_half_trained_model(order: Literal["most", "least"]) -> None:
    spec = Spec(
        task=Addition(digits=1, order=order, train=41, valid=7, test=7),
        model=Seq2SeqModel(
            width=24, heads=3, encoder_layers=1, decoder_layers=1, hidden=37, positions=Learned(length=5)
        ),
        training=Training(epochs=25, batch=41, lr=0.01, schedule=Constant()),
    )
    trainer = Trainer(spec)
    task = trainer.task
    trainer.train()
    model = trainer.model.eval()
    assert isinstance(task, Addition)
    assert isinstance(model, Seq2Seq)
    pairs = torch.cartesian_prod(torch.arange(10), torch.arange(10))
    examples = task.examples(pairs)
    greedy, forced = both_ways(model, examples.inputs[0], examples.targets, task.start)
    assert torch.equal(greedy, forced)
    assert 10 < greedy.sum() < 90
    assert measure(model, examples).exact_match == int(greedy.sum()) / 100
