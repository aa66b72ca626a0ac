"""Specs with dotted keys set, and variants as words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import specs
from attnlab.errors import SpecError
from attnlab.presets import preset
from attnlab.specs import (
    SGD,
    AdamW,
    Learned,
    NoPositions,
    OptimiserSpec,
    PositionSpec,
    Randomised,
    Rotary,
    Seq2SeqModel,
    Spec,
    read_variant,
    spec_hash,
    to_json,
    with_settings,
    write_variant,
)

DEFAULT = preset("addition", "default")


def get(spec: Spec, key: str) -> Any:
    value: Any = spec
    for name in key.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("seed", 7, 7),
        ("task.train", 501, 501),
        ("training.lr", 0.02, 0.02),
        ("training.lr", 1, 1.0),
        ("model.width", 64.0, 64),
        ("model.norm", "post", "post"),
        ("training.optimiser.weight_decay", 0.5, 0.5),
        ("model.positions", "rotary:base=500", Rotary(base=500.0)),
        ("model.positions", "none", NoPositions()),
        ("model.positions", {"kind": "learned", "length": 37}, Learned(length=37)),
        ("training.optimiser", "sgd:momentum=0.9", SGD(momentum=0.9)),
        ("model", "seq2seq:width=12", Seq2SeqModel(width=12)),
    ],
)
def test_one_key_is_set_and_nothing_else(key: str, value: Any, wanted: Any) -> None:
    changed = with_settings(DEFAULT, {key: value})
    assert (get(changed, key), type(get(changed, key))) == (wanted, type(wanted))
    assert with_settings(changed, {key: to_json(get(DEFAULT, key))}) == DEFAULT


def test_only_the_final_spec_has_to_be_valid() -> None:
    for settings in ({"model.width": 96, "model.heads": 12}, {"model.heads": 12, "model.width": 96}):
        model = with_settings(DEFAULT, settings).model
        assert isinstance(model, Seq2SeqModel)
        assert (model.width, model.heads) == (96, 12)
    changed = with_settings(DEFAULT, {"model": "seq2seq:heads=12", "model.width": 96}).model
    assert to_json(changed)["heads"] == 12


def test_a_variant_goes_before_its_own_settings_whatever_the_order() -> None:
    settings = {"training.optimiser.momentum": 0.25, "training.optimiser": "sgd:weight_decay=0.125"}
    assert with_settings(DEFAULT, settings).training.optimiser == SGD(momentum=0.25, weight_decay=0.125)


def test_a_given_object_is_not_changed() -> None:
    adamw = {"kind": "adamw"}
    settings = {"training.optimiser": adamw, "training.optimiser.beta1": 0.5}
    assert with_settings(DEFAULT, settings).training.optimiser == AdamW(beta1=0.5)
    assert adamw == {"kind": "adamw"}


def test_no_settings_change_nothing() -> None:
    assert with_settings(DEFAULT, {}) == DEFAULT


@given(specs.specs, st.permutations(["seed", "model", "training.optimiser", "training.lr", "task"]))
def test_settings_make_any_spec_from_any_other(spec: Spec, keys: list[str]) -> None:
    changed = with_settings(DEFAULT, {key: to_json(get(spec, key)) for key in keys})
    for key in keys:
        assert get(changed, key) == get(spec, key)
    assert spec_hash(changed) != spec_hash(DEFAULT)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"training.lrr": 1.0}, "training.lrr is not a key of this spec; did you mean 'training.lr'?"),
        ({"modle.width": 64}, "modle.width is not a key of this spec; did you mean 'model.width'?"),
        ({"weight_dekay": 1.0}, "weight_dekay is not a key of this spec; "),
        ({"training": {"epochs": 1}}, "training is not a key of this spec; "),
        ({"model.kind": "seq2seq"}, "model.kind is not a key of this spec; "),
        (
            {"training.optimiser": "sgd", "training.optimiser.beta2": 0.9},
            "training.optimiser.beta2 is not a key of this spec; ",
        ),
        (
            {"training.optimiser": {"kind": "sdg"}, "training.optimiser.beta2": 0.9},
            "training.optimiser.beta2 is not a key of this spec; ",
        ),
        ({"model.width": 64.5}, "model.width is 64.5, but it must be a whole number"),
        ({"model.width": float("nan")}, "model.width is nan, but it must be a whole number"),
        ({"seed": True}, "spec.seed is True, but it must be of type int"),
        ({"model.heads": 12}, "model.heads is 12, but it must be a divisor of model.width 128"),
        (
            {"model.positions": "rotari"},
            "model.positions: unknown choice 'rotari'; did you mean 'rotary'?",
        ),
        (
            {"model.positions": "rotary:base"},
            "model.positions: 'rotary:base' is not of the form kind:key=value,key=value",
        ),
        (
            {"model.positions": "rotary:base=x"},
            "model.positions: base in 'rotary:base=x' is 'x', but it must be a number",
        ),
        (
            {"model.positions": "rotary:bas=2"},
            "unknown key spec.model.positions.bas; did you mean 'base'?",
        ),
        ({"model.positions": 3}, "spec.model.positions is 3, but it must be an object with a 'kind'"),
        (
            {"training.optimiser": {"kind": "sdg"}},
            "spec.training.optimiser.kind is 'sdg', which is unknown",
        ),
    ],
)
def test_refused_settings(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError) as caught:
        with_settings(DEFAULT, settings)
    assert str(caught.value).startswith(text)


def test_a_word_is_read_as_a_variant() -> None:
    assert read_variant(PositionSpec, "rotary:base=500") == Rotary(base=500.0)
    word = "randomised:inner=rotary,limit=99"
    assert read_variant(PositionSpec, word) == Randomised(inner="rotary", limit=99)
    assert read_variant(OptimiserSpec, "adamw:beta1=0.5,weight_decay=1") == AdamW(
        beta1=0.5, weight_decay=1.0
    )
    assert write_variant(Learned(length=7, scale=0.5)) == "learned:length=7,scale=0.5"
    assert write_variant(NoPositions()) == "none"


@given(specs.positions)
def test_a_written_variant_reads_as_itself(positions: PositionSpec) -> None:
    assert read_variant(PositionSpec, write_variant(positions)) == positions
