"""What happens in training, for whoever listens. Every event does nothing by default."""

from typing import TYPE_CHECKING

from attnlab.runs import EpochRecord as EpochRecord
from attnlab.runs import StepRecord as StepRecord

if TYPE_CHECKING:
    from attnlab.sets import Examples
    from attnlab.training.trainer import Trainer


class Listener:
    """Somebody who wants to know. Subclasses fill in the events they care for."""

    def started(self, trainer: "Trainer") -> None:
        """Training is about to take its next step."""

    def stepping(self, trainer: "Trainer", batch: "Examples") -> None:
        """A step is about to be taken with ``batch``."""

    def stepped(self, trainer: "Trainer") -> None:
        """A step has been taken."""

    def logged(self, trainer: "Trainer", record: StepRecord) -> None:
        """A window of steps has ended."""

    def epoch_ended(self, trainer: "Trainer", record: EpochRecord) -> None:
        """An epoch has ended."""

    def diverged(self, trainer: "Trainer") -> None:
        """The loss is infinite or NaN: training ends with an error."""

    def stopped(self, trainer: "Trainer") -> None:
        """Training leaves between two steps, because it is done or was asked to stop."""
