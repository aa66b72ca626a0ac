"""Live progress of a training, and stopping it between two steps."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import final

from attnlab.analysis import percent
from attnlab.cli.output import Meter
from attnlab.training import EpochRecord, Listener, StepRecord, Trainer


@final
class TrainingMeter(Listener):
    """Shows steps as a bar and each epoch as a line."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def started(self, trainer: Trainer) -> None:
        self._meter.update(trainer.step, trainer.total_steps)

    def stepped(self, trainer: Trainer) -> None:
        self._meter.update(trainer.step)

    def logged(self, trainer: Trainer, record: StepRecord) -> None:
        self._meter.update(trainer.step, note=f"loss {record.loss:.4f}")

    def epoch_ended(self, trainer: Trainer, record: EpochRecord, best: bool) -> None:
        self._meter.line(
            f"epoch {record.epoch:>3} of {trainer.spec.training.epochs}   "
            f"loss {record.loss:.4f}   validation loss {record.valid_loss:.4f}, "
            f"exact {percent(record.valid_exact_match)}   {record.seconds:.0f} s"
        )


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask training to stop after the current step; a second one interrupts at once."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
