"""Training: one readable loop, and around it optimisers, schedules, events and checkpoints."""

from typing import TYPE_CHECKING

from attnlab.lazy import on_demand

if TYPE_CHECKING:
    from attnlab.training.events import EpochRecord, Listener, StepRecord
    from attnlab.training.measuring import Measured, measure
    from attnlab.training.session import other_processor, train_run
    from attnlab.training.trainer import Trainer
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "EpochRecord", "Listener", "Measured", "StepRecord", "Trainer", "measure", "other_processor",
    "train_run",
]  # fmt: skip
