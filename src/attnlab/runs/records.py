"""What a training writes down: the lines of ``metrics.jsonl``."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

from attnlab.specs import to_json
from attnlab.specs.codec import later


@final
@dataclass(frozen=True)
class StepRecord:
    """A window of steps that ended at ``step``."""

    event: ClassVar[str] = "step"
    step: int
    epoch: float
    lr: float  # of the last of them
    loss: float
    exact_match: float
    seconds: float


@final
@dataclass(frozen=True)
class EpochRecord:
    """An epoch that has ended, measured on the validation data."""

    event: ClassVar[str] = "epoch"
    epoch: int
    step: int
    loss: float
    valid_loss: float
    valid_token_accuracy: float
    valid_exact_match: float
    seconds: float
    test_exact_match: float | None = later(None)  # where the spec says to watch it
    valid_objective: float | None = later(None)  # the loss with smoothed labels, where there are such
    best: bool = False  # whether its validation loss, as it is trained, is the lowest so far

    @property
    def judged(self) -> float:
        """The loss that chooses the weights."""
        return self.valid_loss if self.valid_objective is None else self.valid_objective


@final
@dataclass(frozen=True)
class ProbeRecord:
    """What was asked of attention, see ``training.probes``."""

    event: ClassVar[str] = "probe"
    step: int
    entropy: float
    moved: float | None = later(None)  # of images only


Record = StepRecord | EpochRecord | ProbeRecord
RECORDS: dict[str, type[Record]] = {"step": StepRecord, "epoch": EpochRecord, "probe": ProbeRecord}


def as_line(record: Record) -> dict[str, Any]:
    return {"event": record.event, **to_json(record)}


@final
@dataclass(frozen=True)
class Metrics:
    """All records of a training, in their order."""

    records: list[Record]

    @property
    def steps(self) -> list[StepRecord]:
        return [record for record in self.records if isinstance(record, StepRecord)]

    @property
    def epochs(self) -> list[EpochRecord]:
        return [record for record in self.records if isinstance(record, EpochRecord)]

    @property
    def probes(self) -> list[ProbeRecord]:
        return [record for record in self.records if isinstance(record, ProbeRecord)]
