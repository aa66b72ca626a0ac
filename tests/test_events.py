"""Listeners hear every event the right number of times, and change nothing by listening."""

import math
from typing import Any

import pytest
import torch

from attnlab.sets import Examples
from attnlab.specs import Cosine
from attnlab.training.events import EpochRecord, Listener, StepRecord
from attnlab.training.measuring import measure
from attnlab.training.trainer import DivergedError, Trainer
from tiny import fake_losses, same, tiny

EVENTS = ("started", "stepping", "stepped", "logged", "epoch_ended", "diverged", "stopped")


class Recorder(Listener):
    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []
        self.steps: list[StepRecord] = []
        self.epochs: list[tuple[EpochRecord, bool]] = []

    def started(self, trainer: Trainer) -> None:
        self.heard.append(("started", trainer.step))

    def stepping(self, trainer: Trainer, batch: Examples) -> None:
        assert len(batch) == (3 if trainer.step % 5 == 4 else 5)
        self.heard.append(("stepping", trainer.step))

    def stepped(self, trainer: Trainer) -> None:
        self.heard.append(("stepped", trainer.step))

    def logged(self, trainer: Trainer, record: StepRecord) -> None:
        self.heard.append(("logged", trainer.step))
        self.steps.append(record)

    def epoch_ended(self, trainer: Trainer, record: EpochRecord) -> None:
        self.heard.append(("epoch_ended", trainer.step))
        self.epochs.append((record, record.best))

    def diverged(self, trainer: Trainer) -> None:
        self.heard.append(("diverged", trainer.step))

    def stopped(self, trainer: Trainer) -> None:
        self.heard.append(("stopped", trainer.step))

    def count(self, event: str) -> int:
        return sum(name == event for name, _ in self.heard)


def heard(trainer: Trainer, **options: Any) -> Recorder:
    recorder = Recorder()
    trainer.train([recorder, Listener()], **options)
    return recorder


def test_the_recorder_hears_all_there_is() -> None:
    assert sorted(name for name in vars(Listener) if not name.startswith("_")) == sorted(EVENTS)
    assert all(name in vars(Recorder) for name in EVENTS)


def test_events_of_a_whole_training() -> None:
    recorder = heard(Trainer(tiny()))
    assert [recorder.count(event) for event in EVENTS] == [1, 15, 15, 15, 3, 0, 1]
    assert recorder.heard[0] == ("started", 0)
    assert recorder.heard[-1] == ("stopped", 15)
    assert [step for name, step in recorder.heard if name == "stepped"] == list(range(1, 16))
    assert [step for name, step in recorder.heard if name == "epoch_ended"] == [5, 10, 15]
    last = [name for name, step in recorder.heard if step == 15]
    assert last == ["logged", "epoch_ended", "stepped", "stopped"]


def test_events_of_a_training_that_is_stopped_and_goes_on() -> None:
    trainer = Trainer(tiny())
    first = heard(trainer, stopping=lambda: trainer.step == 7)
    assert [first.count(event) for event in EVENTS] == [1, 7, 7, 7, 1, 0, 1]
    second = heard(trainer)
    assert second.heard[0] == ("started", 7)
    assert [second.count(event) for event in EVENTS] == [1, 8, 8, 8, 2, 0, 1]
    done = heard(trainer)
    assert done.heard == [("started", 15), ("stopped", 15)]


def test_a_training_that_diverges_ends_with_that(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_losses(monkeypatch, 1.0, math.nan)
    trainer, recorder = Trainer(tiny()), Recorder()
    with pytest.raises(DivergedError, match="the loss became nan at step 10"):
        trainer.train([recorder])
    assert recorder.heard[-1] == ("diverged", 10)
    assert recorder.count("stopped") == 0


def test_a_listener_that_does_nothing_changes_nothing() -> None:
    quiet = Trainer(tiny())
    quiet.train()
    watched = Trainer(tiny())
    watched.train([Listener(), Listener()])
    assert same(quiet.model, watched.model)


def test_every_event_does_nothing_by_default() -> None:
    trainer = Trainer(tiny())
    state = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    step = StepRecord(step=1, epoch=0.2, lr=0.1, loss=1.0, exact_match=0.0, seconds=1.0)
    epoch = EpochRecord(1, 5, 1.0, 1.0, 0.0, 0.0, 1.0)
    listener = Listener()
    listener.started(trainer)
    listener.stepping(trainer, trainer.data.train)
    listener.stepped(trainer)
    listener.logged(trainer, step)
    listener.epoch_ended(trainer, epoch)
    listener.diverged(trainer)
    listener.stopped(trainer)
    assert trainer.step == 0
    assert all(torch.equal(state[name], value) for name, value in trainer.model.state_dict().items())


@pytest.mark.parametrize(
    ("most", "steps"), [(3, [5, 10, 15]), (4, [4, 8, 12, 15]), (8, [2, 4, 6, 8, 10, 12, 14, 15])]
)
def test_steps_are_logged_in_windows(monkeypatch: pytest.MonkeyPatch, most: int, steps: list[int]) -> None:
    every = heard(Trainer(tiny())).steps
    monkeypatch.setattr("attnlab.training.trainer.LOGGED_STEPS", most)
    windows = heard(Trainer(tiny())).steps
    assert [record.step for record in windows] == steps
    for begin, window in zip([0, *steps], windows, strict=False):
        inside = every[begin : window.step]
        size = len(inside)
        assert window.loss == pytest.approx(sum(record.loss for record in inside) / size)
        assert window.exact_match == pytest.approx(sum(record.exact_match for record in inside) / size)
        assert window.epoch == window.step / 5


def test_logged_learning_rate_follows_the_schedule() -> None:
    records = heard(Trainer(tiny(schedule=Cosine(warmup=0.0), lr=0.01))).steps
    expected = [0.01 * (1 + math.cos(math.pi * step / 15)) / 2 for step in range(15)]
    assert [record.lr for record in records] == pytest.approx(expected, abs=1e-12)


def test_epoch_records() -> None:
    trainer = Trainer(tiny())
    recorder = heard(trainer)
    for index, (record, _) in enumerate(recorder.epochs):
        losses = [step.loss for step in recorder.steps[5 * index : 5 * index + 5]]
        assert (record.epoch, record.step) == (index + 1, 5 * index + 5)
        assert record.loss == pytest.approx(sum(losses) / 5)
        assert record.valid_loss == trainer.valid_losses[index]
    measured = measure(trainer.kept, trainer.data.valid)
    last = recorder.epochs[-1][0]
    assert last.valid_loss == measured.loss
    assert last.valid_token_accuracy == measured.token_accuracy
    assert last.valid_exact_match == measured.exact_match
    seconds = [record.seconds for record in recorder.steps]
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] < seconds[-1] <= trainer.seconds


def test_best_is_a_new_lowest_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_losses(monkeypatch, 3.0, 3.0, 2.0, 2.5, 1.0)
    recorder = heard(Trainer(tiny(epochs=5)))
    assert [best for _, best in recorder.epochs] == [True, False, True, False, True]
