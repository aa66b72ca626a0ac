"""What happens in training, for whoever listens. Every event does nothing by default."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.training.trainer import Trainer


@dataclass(frozen=True)
class StepRecord:
    """A window of steps that ended at ``step``."""

    step: int
    epoch: float
    lr: float  # of the last of them
    loss: float
    exact_match: float
    seconds: float


@dataclass(frozen=True)
class EpochRecord:
    """An epoch that has ended, measured on the validation data."""

    epoch: int
    step: int
    loss: float
    valid_loss: float
    valid_token_accuracy: float
    valid_exact_match: float
    seconds: float
    test_exact_match: float | None = None  # where the spec says to watch it
    valid_objective: float | None = None  # the validation loss with smoothed labels, where there are such

    def to_json(self) -> dict[str, Any]:
        """Every value that was measured."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Listener:
    """Somebody who wants to know. Subclasses fill in the events they care for."""

    def started(self, trainer: "Trainer") -> None:
        """Training is about to take its next step."""

    def stepped(self, trainer: "Trainer") -> None:
        """A step has been taken."""

    def logged(self, trainer: "Trainer", record: StepRecord) -> None:
        """A window of steps has ended."""

    def epoch_ended(self, trainer: "Trainer", record: EpochRecord, best: bool) -> None:
        """An epoch has ended; ``best`` if its validation loss is the lowest so far.

        Where labels are smoothed, it is the loss with smoothed labels.
        """

    def stopped(self, trainer: "Trainer") -> None:
        """Training leaves between two steps, because it is done or was asked to stop."""
