"""The training loop.

Everything that decides the outcome is in the spec or in the state that ``records.py`` saves: data order and
weights come from the seed, dropout from torch's generator. So a run stopped after any step and resumed
ends with the same bytes as one that was never stopped.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from attnlab.devices import find_device, place
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import build_for
from attnlab.sets import Examples
from attnlab.specs import Spec
from attnlab.training.engines import build_engine
from attnlab.training.events import EpochRecord, Listener, StepRecord
from attnlab.training.measuring import Measured
from attnlab.training.optimisers import WeightAverage, lr_factor
from attnlab.training.watching import Watch

LOGGED_STEPS = 200  # how many windows of steps a whole training is logged in, at most


@final
class DivergedError(LabError):
    """The loss is infinite or NaN."""


@final
class Trainer:
    """One experiment in the making."""

    def __init__(self, spec: Spec, start: dict[str, Tensor] | None = None) -> None:
        """``start`` are the weights to begin with, instead of fresh ones."""
        self.spec = spec
        self.task = spec.task
        self.data = self.task.splits(spec.seed)
        torch.manual_seed(spec.seed)
        model = build_for(spec)
        if start is not None:
            model.load_state_dict(start)
        self.device = find_device(spec.training.device)
        self.model = place(model, self.device)
        self.engine = build_engine(self.model, spec)
        self.average = WeightAverage(self.model, spec.training.ema) if spec.training.ema else None
        self.steps_per_epoch = math.ceil(len(self.data.train) / spec.training.batch)
        every = self.steps_per_epoch * spec.training.epochs
        self.total_steps = min(every, spec.training.steps) if spec.training.steps else every
        self.step = 0
        self.epoch: int | None = None  # whose examples and order are ready
        self.order = torch.empty(0, dtype=torch.long)
        self.loss = math.nan  # of the last step
        self.watch: Watch | None = None  # who looks at its steps, if anybody does
        self.factor = 1.0  # what the learning rate was last multiplied by
        self.seconds = 0.0
        self.valid_losses: list[float] = []  # with smoothed labels, where there are such
        self.perfect = 0  # epochs in a row after which all validation examples were right
        self.window: list[tuple[float, float]] = []  # loss and exact match of steps not yet logged
        self.epoch_loss = 0.0

    @property
    def kept(self) -> Model:
        """The model that is evaluated and saved: the averaged one if there is one."""
        return self.model if self.average is None else self.average.model

    @property
    def done(self) -> bool:
        enough = 0 < self.spec.training.perfect <= self.perfect
        return enough or self.step >= self.total_steps or self._out_of_patience()

    def train(
        self, listeners: Sequence[Listener] = (), stopping: Callable[[], bool] = lambda: False
    ) -> None:
        """Train until done or until ``stopping`` says so, which is asked between steps."""
        began = time.perf_counter() - self.seconds
        for listener in listeners:
            listener.started(self)
        if self.total_steps == 0 and not self.valid_losses:
            self._end_epoch(listeners)  # weights that are kept as they are
        try:
            self._take_steps(listeners, stopping, began)
        except DivergedError:
            for listener in listeners:
                listener.diverged(self)
            raise
        for listener in listeners:
            listener.stopped(self)

    def _take_steps(
        self, listeners: Sequence[Listener], stopping: Callable[[], bool], began: float
    ) -> None:
        while not self.done and not stopping():
            batch = self._next_batch()
            for listener in listeners:
                listener.stepping(self, batch)
            self.update(batch)
            self.seconds = time.perf_counter() - began
            window = math.ceil(self.total_steps / LOGGED_STEPS)
            if self.step % window == 0 or self.step == self.total_steps:
                self._log(listeners)
            if self.step % self.steps_per_epoch == 0 or self.step == self.total_steps:
                self._end_epoch(listeners)
            self.seconds = time.perf_counter() - began
            for listener in listeners:
                listener.stepped(self)

    def update(self, batch: Examples) -> None:
        self.factor = self.lr_factor()
        loss, exact = self.engine.step(batch, self.factor)
        self.step, self.loss = self.step + 1, loss
        if self.average is not None:
            self.average.update(self.step)
        self.window.append((self._finite(loss), exact))
        self.epoch_loss += loss

    def measure(self, examples: Examples) -> Measured:
        return self.engine.measure(self.kept, examples)

    def _finite(self, loss: float) -> float:
        if not math.isfinite(loss):
            raise DivergedError(
                f"the loss became {loss} at step {self.step}; "
                f"try a training.lr below {self.spec.training.lr:g} or training.clip 1"
            )
        return loss

    def lr_factor(self) -> float:
        """What the learning rate is multiplied by at the step to come."""
        total = max(1, self.total_steps)  # threads are chosen by steps that no training asks for
        return lr_factor(self.spec.training.schedule, self.step, total, self.valid_losses)

    def _log(self, listeners: Sequence[Listener]) -> None:
        losses, exact = zip(*self.window, strict=True)
        record = StepRecord(
            step=self.step,
            epoch=self.step / self.steps_per_epoch,
            lr=self.spec.training.lr * self.factor,
            loss=sum(losses) / len(losses),
            exact_match=sum(exact) / len(exact),
            seconds=self.seconds,
        )
        self.window.clear()
        for listener in listeners:
            listener.logged(self, record)

    def _end_epoch(self, listeners: Sequence[Listener]) -> None:
        measured = self.measure(self.data.valid)
        self._finite(measured.loss)
        best = measured.objective < min(self.valid_losses, default=math.inf)
        self.valid_losses.append(measured.objective)
        self.perfect = self.perfect + 1 if measured.exact_match == 1 else 0
        watches = self.spec.training.watch == "test"
        record = EpochRecord(
            epoch=math.ceil(self.step / self.steps_per_epoch),
            step=self.step,
            loss=self._training_loss(),
            valid_loss=measured.loss,
            valid_token_accuracy=measured.token_accuracy,
            valid_exact_match=measured.exact_match,
            seconds=self.seconds,
            test_exact_match=self.measure(self.data.test).exact_match if watches else None,
            valid_objective=measured.smoothed,
            best=best,
        )
        self.epoch_loss = 0.0
        for listener in listeners:
            listener.epoch_ended(self, record)

    def _training_loss(self) -> float:
        """Mean of this epoch's steps; before the first step, the loss on the training examples."""
        if self.step == 0:
            return self.measure(self.data.train).loss
        return self.epoch_loss / ((self.step - 1) % self.steps_per_epoch + 1)

    def _next_batch(self) -> Examples:
        epoch, place = divmod(self.step, self.steps_per_epoch)
        if self.epoch != epoch:  # its examples and their order are functions of seed and epoch alone
            if self.data.resample is not None:
                self.data = replace(self.data, train=self.data.resample(epoch))
            self.epoch, self.order = epoch, self._epoch_order(epoch)
        size = self.spec.training.batch
        batch = self.data.train[self.order[place * size :][:size]]
        return batch if self.data.augment is None else self.data.augment(batch, self.step)

    def _epoch_order(self, epoch: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.spec.seed * 1_000_003 + epoch)
        return torch.randperm(len(self.data.train), generator=generator)

    def _out_of_patience(self) -> bool:
        patience, losses = self.spec.training.patience, self.valid_losses
        return bool(patience and losses) and len(losses) - 1 - losses.index(min(losses)) >= patience
