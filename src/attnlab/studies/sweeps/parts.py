"""What a sweep file says, whichever of the two forms it is written in."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

from attnlab.errors import SpecError
from attnlab.results import Result
from attnlab.runs import Environment
from attnlab.spec import require
from attnlab.studies.sweeps.space import MOST_VALUES, Distribution

Method = Literal["bayes", "random", "grid"]
Goal = Literal["maximize", "minimize"]
MetricName = Literal["valid_exact_match", "valid_token_accuracy", "valid_loss", "loss"]
METHODS: tuple[Method, ...] = typing.get_args(Method)
GOALS: tuple[Goal, ...] = typing.get_args(Goal)
METRICS: tuple[MetricName, ...] = typing.get_args(MetricName)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What is sought: a measurement of validation data, or the training loss."""

    name: MetricName = "valid_exact_match"
    goal: Goal = "maximize"
    target: float | None = None
    """The sweep starts no further run once one has reached this value."""


@dataclass(frozen=True, kw_only=True)
class Hyperband:
    """Stop runs that lag: at min_epochs * factor^k epochs, the best 1/factor go on (Li et al., 2018)."""

    min_epochs: int = 1
    max_epochs: int | None = None
    """No run is stopped from here on."""
    factor: int = 3

    def __post_init__(self) -> None:
        require(self.min_epochs >= 1, "min_epochs", self.min_epochs, "at least 1")
        require(self.factor >= 2, "factor", self.factor, "at least 2")
        last = self.max_epochs
        require(last is None or last > self.min_epochs, "max_epochs", last, f"above {self.min_epochs}")


@dataclass(frozen=True, kw_only=True)
class SweepFile:
    """A search: where it starts from, what it varies, what it seeks, and how."""

    name: str
    method: Method
    metric: Metric
    parameters: Mapping[str, Distribution]
    """By key of the spec. Whether the spec has the key shows when it is set, see ``with_settings``."""
    hyperband: Hyperband | None = None
    count: int | None = None
    """Runs at most."""
    task: str = "addition"
    preset: str = "default"
    settings: Mapping[str, Any]
    """Keys of the spec that are the same in every run and differ from the preset."""
    notes: tuple[str, ...] = ()
    """What the file says that means nothing here, or means what its author may not have meant."""

    def __post_init__(self) -> None:
        if not self.parameters:
            raise SpecError("the sweep has no parameters, but it must vary at least one")
        for key, distribution in self.parameters.items():
            if key in self.settings:
                raise SpecError(f"{key} is both set and searched")
            if self.method == "grid" and distribution.values() is None:
                rule = f"a list of at most {MOST_VALUES} values to be searched by grid"
                raise SpecError(f"{key} is {distribution.describe()}, but it must be {rule}")


TrialState = Literal["finished", "pruned", "failed", "running"]
Scale = Literal["linear", "log", "choice"]
"""How the axis of a parameter is drawn."""


@final
@dataclass(frozen=True, kw_only=True)
class TrialResult:
    number: int
    state: TrialState
    value: float | None
    parameters: dict[str, Any]
    run: str
    error: str | None
    epochs: int
    stability: float | None
    steps_to_converge: float | None
    parameter_count: int | None


@final
@dataclass(frozen=True)
class SkippedTrial:
    """A combination that is impossible, and why."""

    number: int
    reason: str
    parameters: dict[str, Any]


@final
@dataclass(frozen=True)
class Sought:
    name: MetricName
    goal: Goal


@final
@dataclass(frozen=True, kw_only=True)
class SweepResult(Result):
    """All that a sweep found; what depends on the clock is under ``timings``."""

    format: int
    sweep: str
    command: str
    environment: Environment
    method: Method
    metric: Sought
    searched: dict[str, str]
    ended: str
    ranking: list[int]
    best: TrialResult | None
    edges: list[str]
    importance: dict[str, float]
    trials: list[TrialResult]
    skipped: list[SkippedTrial]
    timings: dict[str, float | None]
