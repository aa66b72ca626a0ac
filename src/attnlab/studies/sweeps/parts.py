"""What a sweep file says, whichever of the two forms it is written in; what usual names of settings and
metrics are called here; and what a sweep found.
"""

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, Literal, TypeVar, final

from attnlab.errors import SpecError, brief, nearest
from attnlab.results import Result, Row
from attnlab.runs import Environment
from attnlab.specs import require
from attnlab.specs.codec import later
from attnlab.studies.outcome import StudyResult
from attnlab.studies.sweeps.space import MOST_VALUES, Distribution

Method = Literal["bayes", "random", "grid"]
Goal = Literal["maximize", "minimize"]
MetricName = Literal["valid_exact_match", "valid_token_accuracy", "valid_loss", "loss"]
METHODS: tuple[Method, ...] = typing.get_args(Method)
GOALS: tuple[Goal, ...] = typing.get_args(Goal)
METRICS: tuple[MetricName, ...] = typing.get_args(MetricName)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What is sought: a measurement of validation data, or the training loss."""

    name: MetricName = "valid_exact_match"
    goal: Goal = "maximize"
    target: float | None = None
    """The sweep starts no further run once one has reached this value."""

    def reaches(self, value: float) -> bool:
        """Whether ``value`` is as good as the target."""
        assert self.target is not None
        return value >= self.target if self.goal == "maximize" else value <= self.target


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


_SETTINGS = {
    "training.lr": "lr learning_rate",
    "training.batch": "batch batch_size",
    "training.epochs": "epochs num_epochs n_epochs max_epochs",
    "training.clip": "clip grad_clip clip_norm grad_clip_norm max_grad_norm gradient_clip_val",
    "training.ema": "ema ema_decay",
    "training.smoothing": "smoothing label_smoothing",
    "training.patience": "patience early_stopping_patience",
    "training.threads": "threads num_threads",
    "training.optimiser": "optimiser optimizer",
    "training.optimiser.weight_decay": "weight_decay wd",
    "training.optimiser.momentum": "momentum",
    "training.optimiser.beta1": "beta1 beta_1",
    "training.optimiser.beta2": "beta2 beta_2",
    "training.schedule": "schedule scheduler lr_schedule lr_scheduler",
    "model.width": "width dim d_model model_dim embed_dim emb_dim embedding_dim hidden_size n_embd",
    "model.heads": "heads n_heads num_heads nhead n_head attention_heads num_attention_heads",
    "model.hidden": "hidden d_ff ff_dim ffn_dim mlp_dim dim_feedforward feedforward_dim intermediate_size",
    "model.layers": "layers depth n_layers num_layers n_layer num_hidden_layers",
    "model.encoder_layers": "encoder_layers num_encoder_layers encoder_depth enc_depth enc_layers",
    "model.decoder_layers": "decoder_layers num_decoder_layers decoder_depth dec_depth dec_layers",
    "model.patch": "patch patch_size",
    "model.dropout": "dropout dropout_rate dropout_p",
    "model.activation": "activation",
    "model.norm": "norm",
    "model.positions": "positions positional_encoding position_encoding pos_encoding pos_enc",
    "task.digits": "digits num_digits n_digits",
    "task.train": "train_size num_train n_train train_samples",
    "seed": "seed random_seed",
}
SETTING_NAMES = {name: key for key, names in _SETTINGS.items() for name in names.split()}
_METRICS: dict[MetricName, str] = {
    "valid_exact_match": "exact_match accuracy acc",
    "valid_token_accuracy": "token_accuracy",
    "valid_loss": "loss",
}
METRIC_NAMES: dict[str, MetricName] = {
    # A share of right answers is that of validation data unless it says otherwise; a bare loss is not.
    **{
        data + name: metric
        for data in ("", "valid_", "val_", "validation_", "eval_")
        for metric, names in _METRICS.items()
        for name in names.split()
    },
    **{"loss": "loss", "train_loss": "loss", "training_loss": "loss"},
}


def spec_key(name: str) -> str:
    """The key of the spec that ``name`` means; a dotted name is one already, known or not."""
    if "." in name:
        return name
    usual = name.lower().replace("-", "_")
    if usual in SETTING_NAMES:
        return SETTING_NAMES[usual]
    close = get_close_matches(usual, SETTING_NAMES, n=1)
    advice = (
        f"did you mean {close[0]!r}?" if close else "write it as a key of the spec, such as training.lr"
    )
    raise SpecError(f"unknown setting {brief(name)}; {advice}")


def by_spec_key(named: Mapping[str, T]) -> dict[str, T]:
    """Values by the keys of the spec that their names mean; two names of one key are refused."""
    names: dict[str, str] = {}
    for name in named:
        key = spec_key(name)
        if key in names:
            raise SpecError(
                f"{brief(names[key])} and {brief(name)} both mean {key}, but a key must be named once"
            )
        names[key] = name
    return {key: named[name] for key, name in names.items()}


def metric_name(name: str) -> MetricName:
    """The measurement that ``name`` means: ``val_accuracy``, ``valid/acc`` and ``exact_match`` are one."""
    usual = name.lower().translate(str.maketrans("/-. ", "____"))
    if usual.split("_")[0] in ("test", "testing"):
        raise SpecError(
            f"the metric is {brief(name)}, but choices are made on validation data, such as "
            "valid_exact_match"
        )
    if usual not in METRIC_NAMES:
        raise SpecError(f"unknown metric {brief(name)}{nearest(usual, METRICS)}")
    return METRIC_NAMES[usual]


TrialState = Literal["finished", "pruned", "failed", "running"]
Scale = Literal["linear", "log", "choice"]
"""How the axis of a parameter is drawn."""
ENOUGH = 10
"""Finished trials below which importances mean nothing."""


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
    """All that a sweep found; what depends on the clock is under ``timings``.

    ``scales`` are those of the axes of its parameters. ``retrained`` is how good the best specs are with
    fresh seeds, if that was asked for.
    """

    shown_by: ClassVar[str] = "attnlab.tables.sweep"

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
    scales: dict[str, Scale] | None = later(None)
    complete: bool = later(True)
    retrained: StudyResult | None = later(None)

    def __post_init__(self) -> None:
        best = [] if self.best is None else [self.best.number]
        absent = {*self.ranking, *best} - {trial.number for trial in self.trials}
        if absent:
            raise SpecError(f"the ranking names trial {brief(min(absent))}, which is not among the trials")
        for trial in self.trials:
            if lacking := self.searched.keys() - trial.parameters.keys():
                raise SpecError(f"trial {trial.number} has no value of {brief(min(lacking))}")

    def records(self) -> list[Row]:
        """A row for each trial, with its parameters."""
        return [
            {
                "trial": trial.number,
                "state": trial.state,
                self.metric.name: trial.value,
                **{key: trial.parameters.get(key) for key in self.searched},
                "epochs": trial.epochs,
                "stability": trial.stability,
                "steps_to_converge": trial.steps_to_converge,
                "parameters": trial.parameter_count,
                "run": trial.run,
            }
            for trial in self.trials
        ]
