"""What a training writes down: the lines of ``metrics.jsonl``."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

from attnlab.errors import SpecError, brief
from attnlab.results import Result, Row
from attnlab.specs import from_json, require, to_json
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


def read_record(line: dict[str, Any]) -> Record:
    """What ``as_line`` gave; a ``SpecError`` says what does not fit."""
    kind = line.get("event")
    if not isinstance(kind, str) or kind not in RECORDS:
        raise SpecError(f"it.event is {brief(kind)}, but it must be {' or '.join(map(repr, RECORDS))}")
    record: Record = from_json(RECORDS[kind], line, "it", extra=True)
    return record


def as_line(record: Record) -> dict[str, Any]:
    return {"event": record.event, **to_json(record)}


@final
@dataclass(frozen=True, kw_only=True)
class Summary(Result):
    """What a summary must say of how training ended."""

    steps: int
    epochs: int
    seconds: float
    parameters: int
    valid: dict[str, float]
    examples: dict[str, int] | None = later(None)
    temperature: float = later(1.0)
    """What logits are divided by before probabilities are made of them."""

    def __post_init__(self) -> None:
        require("exact_match" in self.valid, "it.valid", self.valid, "an object with exact_match")
        for name, least in (("steps", 0), ("epochs", 0), ("seconds", 0), ("parameters", 1)):
            value = getattr(self, name)
            require(least <= value < math.inf, f"it.{name}", value, f"at least {least} and finite")
        rule = "above 0 and finite"
        require(0 < self.temperature < math.inf, "it.temperature", self.temperature, rule)


@final
@dataclass(frozen=True, kw_only=True)
class Metrics(Result):
    """How a run trained: the lines that it wrote down, in their order."""

    shown_by: ClassVar[str] = "attnlab.tables.metrics"

    run: str = ""
    lines: list[Record]

    @property
    def steps(self) -> list[StepRecord]:
        return [line for line in self.lines if isinstance(line, StepRecord)]

    @property
    def epochs(self) -> list[EpochRecord]:
        return [line for line in self.lines if isinstance(line, EpochRecord)]

    @property
    def probes(self) -> list[ProbeRecord]:
        return [line for line in self.lines if isinstance(line, ProbeRecord)]

    def records(self) -> list[Row]:
        """A row an epoch; ``time`` is what the epoch alone took, in seconds."""
        probes = {probe.step: probe for probe in self.probes}
        rows: list[Row] = []
        for line, before in zip(self.epochs, (0.0, *(each.seconds for each in self.epochs)), strict=False):
            probe = probes.get(line.step)
            watched = {
                "test_accuracy": line.test_exact_match,
                "entropy": probe and probe.entropy,
                "moved": probe and probe.moved,
            }
            rows.append(
                {
                    "epoch": line.epoch,
                    "loss": line.loss,
                    "time": line.seconds - before,
                    "valid_loss": line.valid_loss,
                    "valid_accuracy": line.valid_exact_match,
                    **{name: value for name, value in watched.items() if value is not None},
                }
            )
        return rows
