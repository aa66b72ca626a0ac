"""The hash identifies an experiment: the same for ever, and another when anything changes."""

from copy import deepcopy
from typing import Any

import pytest

from attnlab.problems.addition import Addition
from attnlab.specs import (
    AdamW,
    OneCycle,
    Rotary,
    Seq2SeqModel,
    Spec,
    Training,
    from_json,
    spec_hash,
    to_json,
)

FIXED = Spec(
    task=Addition(
        digits=3, operands="full", order="least", sampling="balanced", train=101, valid=11, test=13
    ),
    model=Seq2SeqModel(
        width=24,
        heads=3,
        encoder_layers=2,
        decoder_layers=1,
        hidden=37,
        activation="relu",
        norm="pre",
        positions=Rotary(base=10_000.0),
        dropout=0.125,
    ),
    training=Training(
        epochs=7,
        batch=17,
        lr=0.002,
        optimiser=AdamW(beta1=0.9, beta2=0.99, weight_decay=0.01),
        schedule=OneCycle(peak=0.3, start=0.04),
        clip=1.0,
        ema=0.5,
        smoothing=0.1,
        patience=3,
        threads=1,
    ),
    seed=5,
)

OTHER: dict[str, Any] = {
    "task.digits": 4,
    "task.operands": "reference",
    "task.order": "most",
    "task.sampling": "uniform",
    "task.train": 103,
    "task.valid": 13,
    "task.test": 11,
    "model.width": 30,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 2,
    "model.hidden": 41,
    "model.activation": "gelu",
    "model.norm": "post",
    "model.positions": {"kind": "sinusoidal", "base": 10_000.0},
    "model.positions.base": 100.0,
    "model.dropout": 0.25,
    "training.epochs": 8,
    "training.batch": 19,
    "training.lr": 0.003,
    "training.optimiser": {"kind": "sgd"},
    "training.optimiser.beta1": 0.8,
    "training.optimiser.beta2": 0.98,
    "training.optimiser.weight_decay": 0.02,
    "training.schedule": {"kind": "plateau"},
    "training.schedule.peak": 0.4,
    "training.schedule.start": 0.05,
    "training.clip": 2.0,
    "training.ema": 0.6,
    "training.smoothing": 0.2,
    "training.patience": 4,
    "training.threads": 2,
    "seed": 6,
}


def leaves(data: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key, value in data.items():
        found += leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"]
    return [path for path in found if not path.endswith("kind")]


def changed(path: str) -> Spec:
    data = deepcopy(to_json(FIXED))
    *parents, last = path.split(".")
    inner = data
    for key in parents:
        inner = inner[key]
    inner[last] = OTHER[path]
    return from_json(Spec, data)


def test_the_hash_is_stable() -> None:
    assert spec_hash(FIXED) == "ae8f1cbe3245"
    assert spec_hash(from_json(Spec, to_json(FIXED))) == "ae8f1cbe3245"


def test_every_field_is_changed_below() -> None:
    assert sorted(OTHER) == sorted(
        [*leaves(to_json(FIXED)), "model.positions", "training.optimiser", "training.schedule"]
    )


@pytest.mark.parametrize("path", OTHER)
def test_the_hash_changes_with_every_field(path: str) -> None:
    assert spec_hash(changed(path)) != spec_hash(FIXED)


def test_all_those_hashes_differ() -> None:
    assert len({spec_hash(changed(path)) for path in OTHER}) == len(OTHER)


def test_whole_numbers_hash_like_the_floats_they_equal() -> None:
    whole = Training(lr=1.0)
    object.__setattr__(whole, "lr", 1)  # tests check types where Python does not
    assert len({spec_hash(Spec(task=Addition(), training=each)) for each in (whole, Training(lr=1.0))}) == 1
