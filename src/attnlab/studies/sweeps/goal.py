"""What a sweep seeks and when it gives a run up, in W&B's words and in those of the short form; what usual
names of settings and metrics are called here.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, cast

from attnlab.errors import SpecError, nearest
from attnlab.studies.sweeps.parts import (
    GOALS,
    METHODS,
    METRICS,
    Goal,
    Hyperband,
    Method,
    Metric,
    MetricName,
)
from attnlab.studies.sweeps.values import check_keys, expect, mapping, number, text, whole

T = TypeVar("T")

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
_METRICS: dict[str, MetricName] = {
    "exact_match": "valid_exact_match",
    "accuracy": "valid_exact_match",
    "acc": "valid_exact_match",
    "token_accuracy": "valid_token_accuracy",
    "loss": "valid_loss",
}
SETTING_NAMES = {name: key for key, names in _SETTINGS.items() for name in names.split()}
METRIC_NAMES: dict[str, MetricName] = {
    # A share of right answers is that of validation data unless it says otherwise; a bare loss is not.
    **_METRICS,
    **{
        f"{data}_{name}": _METRICS[name]
        for data in ("valid", "val", "validation", "eval")
        for name in _METRICS
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
    raise SpecError(f"{name!r} is no known name of a setting; {advice}")


def by_spec_key(named: Mapping[str, T]) -> dict[str, T]:
    """Values by the keys of the spec that their names mean; two names of one key are refused."""
    names: dict[str, str] = {}
    for name in named:
        key = spec_key(name)
        if key in names:
            raise SpecError(f"{names[key]!r} and {name!r} both mean {key}, but a key must be named once")
        names[key] = name
    return {key: named[name] for key, name in names.items()}


def metric_name(name: str) -> MetricName:
    """The measurement that ``name`` means: ``val_accuracy``, ``valid/acc`` and ``exact_match`` are one."""
    usual = name.lower().translate(str.maketrans("/-. ", "____"))
    if usual.split("_")[0] in ("test", "testing"):
        raise SpecError(
            f"the metric is {name!r}, but choices are made on validation data, such as valid_exact_match"
        )
    if usual not in METRIC_NAMES:
        raise SpecError(f"{name!r} is no known metric{nearest(usual, METRICS)}")
    return METRIC_NAMES[usual]


def read_method(value: Any) -> Method:
    expect(value in METHODS, "method", value, " or ".join(map(repr, METHODS)))
    return cast(Method, value)


def read_metric(value: Any) -> Metric:
    """W&B's ``metric``; without a goal it is minimized, as at W&B."""
    data = mapping("metric", value)
    foreign = ("impute", "impute_while_running")
    check_keys(data, ("name", "goal", "target"), where="metric.", foreign=foreign)
    if "name" not in data:
        raise SpecError("metric has no 'name', but it must name a measurement such as valid_exact_match")
    return Metric(
        name=metric_name(text("metric.name", data["name"])),
        goal=_goal("metric.goal", data.get("goal", "minimize")),
        target=number("metric.target", data["target"]) if "target" in data else None,
    )


def read_goal(value: Any) -> Metric:
    """The short form's ``goal: maximize valid_exact_match``."""
    words = text("goal", value).split()
    rule = "two words such as 'maximize valid_exact_match'"
    expect(len(words) == 2, "goal", value, rule)
    return Metric(name=metric_name(words[1]), goal=_goal("goal", words[0]))


def goal_notes(metric: Metric) -> tuple[str, ...]:
    """A search for the worst is taken at its word, but not in silence: W&B minimizes by default."""
    sense = "minimize" if metric.name.endswith("loss") else "maximize"
    if metric.goal == sense:
        return ()
    return (f"the goal is to {metric.goal} {metric.name}; the best would be to {sense} it",)


def read_early_terminate(value: Any) -> Hyperband:
    """W&B's ``early_terminate``: from ``min_iter`` upwards, or ``s`` times down from ``max_iter``."""
    data = mapping("early_terminate", value)
    check_keys(data, ("type", "min_iter", "max_iter", "s", "eta", "strict"), where="early_terminate.")
    kind, strict = data.get("type"), data.get("strict", False)
    expect(kind == "hyperband", "early_terminate.type", kind, "'hyperband'")
    expect(
        strict is False, "early_terminate.strict", strict, "false, since strict stopping is not supported"
    )
    factor = whole("early_terminate.eta", data.get("eta", 3), 2)
    last = whole("early_terminate.max_iter", data["max_iter"], 1) if "max_iter" in data else None
    if last is not None and "s" in data:
        return _downwards(last, whole("early_terminate.s", data["s"], 1), factor)
    if "min_iter" not in data:
        raise SpecError("early_terminate needs 'min_iter', or 'max_iter' and 's'")
    first = whole("early_terminate.min_iter", data["min_iter"], 1)
    expect(last is None or last > first, "early_terminate.max_iter", last, f"above min_iter, {first}")
    return Hyperband(min_epochs=first, max_epochs=last, factor=factor)


def early_terminate_notes(data: Mapping[str, Any]) -> tuple[str, ...]:
    """W&B passes over ``min_iter`` where ``max_iter`` and ``s`` are given, and over ``s`` alone."""
    if "max_iter" in data and "s" in data:
        return (
            ("early_terminate.min_iter is not used: max_iter and s decide",) if "min_iter" in data else ()
        )
    return ("early_terminate.s is not used: it counts down from max_iter",) if "s" in data else ()


def read_prune(value: Any) -> Hyperband:
    """The short form's ``prune: {min_epochs: 1, factor: 3}``."""
    keys = {"min_epochs": 1, "max_epochs": 2, "factor": 2}
    data = mapping("prune", value)
    check_keys(data, keys, where="prune.")
    read = {key: whole(f"prune.{key}", data[key], keys[key]) for key in data}
    try:
        return Hyperband(**read)
    except SpecError as error:
        raise SpecError(f"prune: {error}") from error


def _goal(key: str, value: Any) -> Goal:
    expect(value in GOALS, key, value, " or ".join(map(repr, GOALS)))
    return cast(Goal, value)


def _downwards(last: int, times: int, factor: int) -> Hyperband:
    """W&B's brackets max_iter/eta, max_iter/eta^2, ...: s of them, as far as they are whole epochs."""
    expect(last >= factor, "early_terminate.max_iter", last, f"at least eta, {factor}")
    first = last
    while times > 0 and first >= factor:
        first, times = first // factor, times - 1
    return Hyperband(min_epochs=first, max_epochs=last, factor=factor)
