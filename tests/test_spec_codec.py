"""Specs as JSON and back, and what is said about JSON that is no spec."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given

import specs
from attnlab.errors import SpecError
from attnlab.problems.addition import Addition
from attnlab.results import Interval, Result
from attnlab.specs import (
    Alibi,
    Coupled,
    Interpolated,
    Learned,
    NoPositions,
    PositionSpec,
    Randomised,
    Relative,
    Rotary,
    Sinusoidal,
    Spec,
    Training,
    from_json,
    spec_hash,
    to_json,
    variants,
)
from attnlab.specs.codec import later


def through_text(spec: Spec) -> Spec:
    return from_json(Spec, json.loads(json.dumps(to_json(spec))))


@pytest.mark.parametrize(
    ("task", "name"), [(task, name) for task in specs.PRESETS for name in specs.PRESETS[task]]
)
def test_presets_round_trip(task: str, name: str) -> None:
    assert through_text(specs.PRESETS[task][name]) == specs.PRESETS[task][name]


@given(specs.specs)
def test_random_specs_round_trip(spec: Spec) -> None:
    again = through_text(spec)
    assert again == spec
    assert spec_hash(again) == spec_hash(spec)


def test_json_of_a_variant_carries_its_kind() -> None:
    assert to_json(Rotary(base=100.0)) == {"kind": "rotary", "base": 100.0}
    assert to_json(NoPositions()) == {"kind": "none"}


def test_missing_keys_take_their_defaults() -> None:
    read = from_json(Spec, {"task": {"kind": "addition", "digits": 5}, "seed": 3})
    assert read == Spec(task=Addition(digits=5), seed=3)


def test_a_whole_number_serves_as_a_float() -> None:
    lr = from_json(Training, {"lr": 1}).lr
    assert (type(lr), lr) == (float, 1.0)


def test_variants_of_a_closed_union() -> None:
    kinds = {
        "none": NoPositions,
        "sinusoidal": Sinusoidal,
        "learned": Learned,
        "rotary": Rotary,
        "alibi": Alibi,
        "relative": Relative,
        "randomised": Randomised,
        "interpolated": Interpolated,
        "coupled": Coupled,
    }
    assert variants(PositionSpec) == kinds
    assert variants(Addition) == {"addition": Addition}
    assert variants(Training) == {}
    assert variants(int) == {}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"sede": 1}, "unknown key spec.sede; did you mean 'seed'?"),
        ({"zzz": 1}, "unknown key spec.zzz; known: engine, model, seed, source, start, task, training"),
        (
            {"model": {"kind": "seq2seq", "positions": {"kind": "rotary", "bas": 2.0}}},
            "unknown key spec.model.positions.bas; did you mean 'base'?",
        ),
        ({"training": {"kind": "x"}}, "unknown key spec.training.kind"),
        (
            {"task": {"kind": "additon"}},
            "spec.task.kind is 'additon', which is unknown; did you mean 'addition'?",
        ),
        ({"task": {"kind": ["addition"]}}, "spec.task.kind is ['addition'], which is unknown"),
        ({"task": {"digits": 3}}, "spec.task is {'digits': 3}, but it must be an object with a 'kind'"),
        ({"task": 3}, "spec.task is 3, but it must be an object with a 'kind'"),
        ({"training": 3}, "spec.training is 3, but it must be an object"),
        ([], "spec is [], but it must be an object"),
        (
            {"model": {"kind": "seq2seq", "norm": "mid"}},
            "spec.model.norm is 'mid', but it must be 'pre' or 'post'",
        ),
        ({"seed": "1"}, "spec.seed is '1', but it must be of type int"),
        ({"seed": 1.0}, "spec.seed is 1.0, but it must be of type int"),
        ({"seed": True}, "spec.seed is True, but it must be of type int"),
        ({"seed": None}, "spec.seed is None, but it must be of type int"),
        ({"training": {"lr": "fast"}}, "spec.training.lr is 'fast', but it must be of type float"),
        ({"training": {"lr": 0}}, "training.lr is 0.0, but it must be above 0"),
    ],
)
def test_refused_json(data: Any, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        from_json(Spec, data)
    assert text in str(caught.value)


def test_refusal_names_the_path_it_was_given() -> None:
    with pytest.raises(SpecError, match=r"^unknown key flags\.epoch; did you mean 'epochs'\?$"):
        from_json(Training, {"epoch": 1}, "flags")


@dataclass(frozen=True)
class Inner:
    value: float
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class Outer(Result):
    name: str
    rows: list[Inner]
    groups: dict[str, Inner]
    pair: tuple[int, str]
    more: tuple[float, ...] = ()
    only: Inner | None = later(None)


def test_results_survive_json() -> None:
    outer = Outer(
        name="a",
        rows=[Inner(0.5, (0.25, 0.75)), Inner(1.0, None)],
        groups={"x": Inner(2.0, None)},
        pair=(3, "b"),
    )
    plain = json.loads(json.dumps(outer.to_json()))
    assert plain["rows"][0] == {"value": 0.5, "interval": [0.25, 0.75]}
    assert "only" not in plain
    assert Outer.from_json({**plain, "weights": "later keys are left out"}) == outer


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("rows", {}, "Outer.rows is {}, but it must be a list"),
        (
            "rows",
            [{"value": "a", "interval": None}],
            r"Outer.rows\[0\].value is 'a', but it must be of type float",
        ),
        ("groups", [], r"Outer.groups is \[\], but it must be an object"),
        ("pair", [1], r"Outer.pair is \[1\], but it must be a list of 2"),
        ("name", None, "Outer.name is None, but it must be of type str"),
    ],
)
def test_a_damaged_result_is_refused(key: str, value: Any, rule: str) -> None:
    good = Outer(name="a", rows=[], groups={}, pair=(3, "b")).to_json()
    with pytest.raises(SpecError, match=rule):
        Outer.from_json({**good, key: value})


def test_a_result_that_lacks_a_field_is_refused() -> None:
    with pytest.raises(SpecError, match="Outer has no 'rows', which it needs"):
        Outer.from_json({"name": "a", "groups": {}, "pair": [1, "b"]})


def test_the_path_to_a_wrong_value_is_short_whatever_keys_are_called() -> None:
    with pytest.raises(SpecError, match=r"^spec\.x{99}\.\.\.x{98} is '', but it must be of type int$"):
        from_json(dict[str, int], {"x" * 5000: ""})
