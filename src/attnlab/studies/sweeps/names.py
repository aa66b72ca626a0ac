"""Usual names of settings and metrics, and what they are called here."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

from attnlab.errors import SpecError, nearest
from attnlab.studies.sweeps.parts import METRICS, MetricName

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
