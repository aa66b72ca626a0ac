from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnlab.errors import LabError
from attnlab.models import Seq2Seq
from attnlab.sets import Examples
from attnlab.specs import SGD, AdamW, Muon, Plateau, Spec, with_settings
from attnlab.training.engines import TorchEngine
from attnlab.training.events import EpochRecord, Listener
from attnlab.training.measuring import Measured, cross_entropy, measure
from attnlab.training.optimisers import build_optimisers
from attnlab.training.trainer import Trainer
from tiny import TINY, fake_losses, same, tiny


def trained(spec: Spec) -> Trainer:
    trainer = Trainer(spec)
    trainer.train()
    return trainer


def batches(spec: Spec, stop_after: int | None = None) -> list[Tensor]:
    """The sources of every batch, in the order of training; stopped once on the way if asked."""
    trainer, seen = Trainer(spec), []
    update = trainer.update

    def look(batch: Examples) -> None:
        seen.append(batch.inputs[0])
        update(batch)

    trainer.update = look  # type: ignore[method-assign]
    trainer.train(stopping=lambda: trainer.step == stop_after)
    if stop_after is not None:
        assert len(seen) == trainer.step == stop_after
        trainer.train()
    return seen


@pytest.mark.parametrize("optimiser", [AdamW(), SGD(momentum=0.9), Muon()], ids=["adamw", "sgd", "muon"])
def test_same_spec_same_bits(optimiser: Any) -> None:
    spec = tiny(optimiser=optimiser, ema=0.5)
    first = trained(spec)
    torch.manual_seed(99)  # whatever happened before does not matter
    again = trained(spec)
    assert same(first.model, again.model)
    assert same(first.kept, again.kept)
    assert first.valid_losses == again.valid_losses


def test_training_changes_the_weights_and_lowers_the_loss() -> None:
    fresh, done = Trainer(TINY), trained(tiny(epochs=20))
    assert not same(fresh.model, done.model)
    assert measure(done.model, done.data.train).loss < 0.8 * measure(fresh.model, fresh.data.train).loss


def test_another_seed_gives_other_weights_and_data() -> None:
    first, other = Trainer(TINY), Trainer(replace(TINY, seed=4))
    assert not same(first.model, other.model)
    assert not torch.equal(first.data.train.targets, other.data.train.targets)


def test_every_epoch_sees_every_example_once_in_another_order() -> None:
    seen = batches(TINY)
    assert [len(batch) for batch in seen] == [5, 5, 5, 5, 3] * 3
    epochs = [torch.cat(seen[start : start + 5]) for start in (0, 5, 10)]
    every = sorted(Trainer(TINY).data.train.inputs[0].tolist())
    assert all(sorted(epoch.tolist()) == every for epoch in epochs)
    assert len({str(epoch.tolist()) for epoch in epochs}) == 3


@pytest.mark.parametrize("stop_after", [None, 5, 7])
def test_order_is_a_function_of_seed_and_epoch(stop_after: int | None) -> None:
    """Neither the model, nor the optimiser, nor a stop on the way changes it; the seed does."""
    other = with_settings(tiny(optimiser=SGD()), {"model.width": 12, "model.dropout": 0.0})
    for a, b in zip(batches(TINY), batches(other, stop_after), strict=True):
        assert torch.equal(a, b)
    orders = [Trainer(replace(TINY, seed=seed))._epoch_order(0).tolist() for seed in (3, 4)]
    assert orders[0] != orders[1]


def test_stopped_and_continued_gives_the_same_bits() -> None:
    trainer = Trainer(TINY)
    trainer.train(stopping=lambda: trainer.step == 7)
    assert (trainer.step, trainer.done) == (7, False)
    trainer.train()
    assert (trainer.step, trainer.done) == (15, True)
    assert same(trainer.model, trained(TINY).model)


@pytest.mark.parametrize(
    ("patience", "losses", "epochs"),
    [
        (2, [3.0, 2.0, 2.5, 2.0, 1.0, 1.0], 4),
        (1, [3.0, 3.0, 1.0], 2),
        (2, [3.0, 4.0, 2.0, 3.0, 1.0, 2.0], 6),
        (0, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 6),
    ],
)
def test_patience(monkeypatch: pytest.MonkeyPatch, patience: int, losses: list[float], epochs: int) -> None:
    fake_losses(monkeypatch, *losses)
    trainer = trained(tiny(epochs=6, patience=patience))
    assert trainer.valid_losses == losses[:epochs]
    assert trainer.step == 5 * epochs
    assert trainer.done


@pytest.mark.parametrize(
    ("perfect", "exact", "epochs"),
    [
        (1, [0.5, 1.0], 2),
        (2, [1.0, 0.9, 1.0, 1.0], 4),
        (0, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 6),
        (3, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0], 6),
    ],
)
def test_training_ends_when_validation_is_perfect(
    monkeypatch: pytest.MonkeyPatch, perfect: int, exact: list[float], epochs: int
) -> None:
    left = iter(exact)
    monkeypatch.setattr("attnlab.training.engines.measure", lambda *_, **__: Measured(1.0, 0.0, next(left)))
    trainer = trained(tiny(epochs=6, perfect=perfect))
    assert trainer.step == 5 * epochs
    assert trainer.done


def test_plateau_lowers_the_learning_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_losses(monkeypatch, 1.0, 1.0, 1.0, 1.0)
    trainer = trained(tiny(epochs=4, schedule=Plateau(factor=0.5, patience=1), optimiser=SGD()))
    assert isinstance(trainer.engine, TorchEngine)
    assert trainer.engine.optimisers.parts[0].param_groups[0]["lr"] == 0.005


def test_non_finite_loss_says_what_to_do() -> None:
    text = r"^the loss became (nan|inf) at step \d; try a training\.lr below 1e\+30 or training\.clip 1$"
    with pytest.raises(LabError, match=text):
        trained(tiny(lr=1e30, clip=0.0, optimiser=SGD()))


def test_clip_bounds_the_step() -> None:
    """Plain descent with rate 1 moves by exactly the clipped gradient."""
    for clip in (1e-3, 2e-3):
        trainer = Trainer(tiny(lr=1.0, clip=clip, optimiser=SGD()))
        before = nn.utils.parameters_to_vector(trainer.model.parameters()).detach().double()
        trainer.update(trainer.data.train)
        after = nn.utils.parameters_to_vector(trainer.model.parameters()).detach().double()
        assert (after - before).norm().item() == pytest.approx(clip, rel=1e-3)


def test_without_average_the_model_itself_is_kept() -> None:
    trainer = Trainer(TINY)
    assert trainer.kept is trainer.model


def test_the_average_is_kept_and_measured() -> None:
    trainer = trained(tiny(ema=0.9))
    assert trainer.average is not None
    assert trainer.kept is trainer.average.model
    assert not same(trainer.kept, trainer.model)
    assert trainer.valid_losses[-1] == measure(trainer.kept, trainer.data.valid).loss


def test_the_average_follows_every_step() -> None:
    """After the first step it has gone 9/11 of the way from the start to the trained weights."""
    trainer = Trainer(tiny(ema=0.9))
    assert isinstance(trainer.model, Seq2Seq)
    start = trainer.model.readout.weight.detach().clone()
    trainer.update(trainer.data.train)
    assert isinstance(trainer.kept, Seq2Seq)
    expected = start + 9 / 11 * (trainer.model.readout.weight - start)
    torch.testing.assert_close(trainer.kept.readout.weight, expected, check_stride=False)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_learned_loss_is_smoothed_and_told_loss_is_not(smoothing: float) -> None:
    spec = with_settings(tiny(smoothing=smoothing, clip=0.0), {"model.dropout": 0.0})
    trainer = Trainer(spec)
    train = trainer.data.train
    before = deepcopy(trainer.model)
    logits = before(*train.inputs)
    cross_entropy(logits, train.targets, smoothing=smoothing).backward()  # type: ignore[no-untyped-call]
    build_optimisers(before, spec.training.optimiser, spec.training.lr).step(trainer.lr_factor())
    trainer.update(train)
    assert trainer.window[0][0] == pytest.approx(cross_entropy(logits, train.targets).item(), rel=1e-6)
    assert same(before, trainer.model)


def test_steps_and_epochs() -> None:
    trainer = Trainer(tiny(batch=23, epochs=2))
    assert (trainer.steps_per_epoch, trainer.total_steps) == (1, 2)
    trainer = Trainer(tiny(batch=22, epochs=2))
    assert (trainer.steps_per_epoch, trainer.total_steps) == (2, 4)


def test_epochs_are_judged_by_the_loss_that_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain losses rise while smoothed ones fall: the last epoch is the best one."""
    left = iter([Measured(0.1, 0.0, 0.0, smoothed=0.7), Measured(0.2, 0.0, 0.0, smoothed=0.6)])
    monkeypatch.setattr("attnlab.training.engines.measure", lambda *_, **__: next(left))
    trainer, told = Trainer(tiny(smoothing=0.3, epochs=2)), []

    class Ended(Listener):
        def epoch_ended(self, trainer: Trainer, record: EpochRecord) -> None:
            told.append((record.valid_loss, record.valid_objective, record.best))

    trainer.train((Ended(),))
    assert told == [(0.1, 0.7, True), (0.2, 0.6, True)]
    assert trainer.valid_losses == [0.7, 0.6]


def test_the_smoothed_loss_is_measured_where_it_is_trained() -> None:
    trainer = Trainer(tiny(smoothing=0.3))
    examples = trainer.data.valid
    found = trainer.measure(examples)
    logits = trainer.model.eval()(*examples.inputs)
    assert found.loss == pytest.approx(cross_entropy(logits, examples.targets).item())
    assert found.objective == pytest.approx(cross_entropy(logits, examples.targets, smoothing=0.3).item())
    plain = Trainer(tiny()).measure(examples)
    assert (plain.smoothed, plain.objective) == (None, plain.loss)
