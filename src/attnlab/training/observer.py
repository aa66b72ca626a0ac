"""Whoever watches the trainings of attnlab: ``observed.json`` of the run folder."""

import json
import math
import time
from typing import Any, final

from attnlab.devices import device_of
from attnlab.errors import RunError
from attnlab.runs import RunFolder
from attnlab.sets import Examples
from attnlab.training.events import Listener
from attnlab.training.trainer import Trainer
from attnlab.training.watching import Watch


@final
class Observer(Listener):
    """Watches a few steps and writes down what it saw, every few seconds and at the end.

    A training that goes on after a kill goes on from what was written last; steps in between are not
    seen again, since nothing of this decides how it trains.
    """

    def __init__(self, run: RunFolder, *, every_seconds: float = 10.0) -> None:
        self._run = run
        self._every = every_seconds
        self._saved = time.monotonic()
        self.watch: Watch | None = None

    def started(self, trainer: Trainer) -> None:
        try:
            before = self._run.observed() if trainer.step else None
        except RunError:
            before = None  # damaged, or of a training that nobody watched
        self.watch = trainer.watch = Watch(
            trainer.model, total=trainer.total_steps, before=before, step=trainer.step
        )

    def stepping(self, trainer: Trainer, batch: Examples) -> None:
        watch = self.watch
        if watch is not None and watch.due:
            watch.begin(batch.inputs)
            targets = batch.targets.to(device_of(trainer.model))

            def answered(_model: Any, _inputs: Any, logits: Any) -> None:
                once.remove()  # what is measured after the step is not of the step
                watch.answered(logits, targets)

            once = trainer.model.register_forward_hook(answered)

    def stepped(self, trainer: Trainer) -> None:
        if self.watch is not None:
            self.watch.end(trainer.loss, trainer.spec.training.lr * trainer.factor)
            if time.monotonic() - self._saved >= self._every:
                self._write()

    def diverged(self, trainer: Trainer) -> None:
        if self.watch is not None:
            self.watch.end(math.nan, trainer.spec.training.lr * trainer.factor)
        self.stopped(trainer)

    def stopped(self, trainer: Trainer) -> None:
        if self.watch is not None:
            self.watch.close()
            if self.watch.step:
                self._write()

    def _write(self) -> None:
        assert self.watch is not None
        content = json.dumps(self.watch.observed().to_json())
        self._run.write({"observed.json": f"{content}\n".encode()})
        self._saved = time.monotonic()
