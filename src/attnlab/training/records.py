"""Listeners that keep what happens in the run folder: metrics and checkpoints."""

import json
import time
from dataclasses import asdict
from typing import final

from torch import Tensor

from attnlab.runs import Run, save_weights
from attnlab.storage import append_json_line, write_text
from attnlab.training.events import EpochRecord, Listener, StepRecord
from attnlab.training.state import save_state
from attnlab.training.trainer import Trainer

METRICS = "metrics.jsonl"


@final
class MetricsLog(Listener):
    """Writes each record as a line of ``metrics.jsonl``."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def started(self, trainer: Trainer) -> None:
        """Drop records of steps that will be taken again."""
        lines = [line for line in self._run.metrics() if line["step"] <= trainer.step]
        write_text(self._run.file(METRICS), "".join(json.dumps(line) + "\n" for line in lines))

    def logged(self, trainer: Trainer, record: StepRecord) -> None:
        append_json_line(self._run.file(METRICS), {"event": "step", **asdict(record)})

    def epoch_ended(self, trainer: Trainer, record: EpochRecord, best: bool) -> None:
        append_json_line(self._run.file(METRICS), {"event": "epoch", **record.to_json(), "best": best})


@final
class Checkpoints(Listener):
    """Saves the best weights and the state every few seconds and at a stop.

    The best weights wait in memory until then; they go first, so that no state lacks the weights it saw.
    """

    def __init__(self, run: Run, *, every_seconds: float = 10.0) -> None:
        self._run = run
        self._every = every_seconds
        self._saved = time.monotonic()
        self._best: dict[str, Tensor] | None = None  # weights that are not on the disk yet

    def epoch_ended(self, trainer: Trainer, record: EpochRecord, best: bool) -> None:
        if best:
            self._best = {name: value.clone() for name, value in trainer.kept.state_dict().items()}

    def stepped(self, trainer: Trainer) -> None:
        if time.monotonic() - self._saved >= self._every:
            self.stopped(trainer)

    def stopped(self, trainer: Trainer) -> None:
        if self._best is not None:
            save_weights(self._run.file("best.safetensors"), self._best)
            self._best = None
        save_state(self._run, trainer)
        self._saved = time.monotonic()
