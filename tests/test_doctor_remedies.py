"""Remedies that are settings: each command is parsed, and gives the spec that the settings give."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.cli.train import read_options
from attnlab.doctor import remedies
from attnlab.doctor.findings import Remedy, Settings
from attnlab.doctor.patient import Patient
from attnlab.doctor.remedies import cured_spec
from attnlab.errors import InputError, SpecError
from attnlab.presets import preset
from attnlab.specs import SGD, AdamW, Muon, PatchAttentionModel, Spec, Training, from_json, to_json
from attnlab.storage import write_json
from sick_runs import SPEC

SETTINGS: list[Settings] = [
    {"training.lr": 0.03},
    {"training.lr": 0.0067, "training.schedule": remedies.WARMED, "training.clip": 2.0},
    {"training.optimiser.weight_decay": 0.01},
    {"training.optimiser": "sgd", "training.optimiser.momentum": 0.5},
    {"model.positions": "learned:length=64,scale=0.02", "model.norm": "post"},
    {"task.train": 1400, "model.pooling": "min", "training.epochs": 7},
]

DIGITS = preset("digits", "default").task


def of(settings: Settings, spec: Spec = SPEC, path: Path | None = None) -> Remedy:
    return remedies.prescribed(Remedy("try", settings=settings), spec, path)


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_command_gives_the_cured_spec(settings: Settings, tmp_path: Path) -> None:
    write_json(tmp_path / "spec.json", to_json(SPEC))
    remedy = of(settings, path=tmp_path)
    program, command, *words = shlex.split(remedy.command)
    assert (program, command) == ("attnlab", "train")
    assert read_options(words, command="train")[1].spec == cured_spec(SPEC, remedy) != SPEC


def test_booleans_are_flags(tmp_path: Path) -> None:
    model = PatchAttentionModel(residual=True)
    spec = replace(SPEC, task=DIGITS, model=model)
    write_json(tmp_path / "spec.json", to_json(spec))
    remedy = of({"model.residual": False, "model.norm": True}, spec, tmp_path)
    words = shlex.split(remedy.command)[2:]
    assert words[2:] == ["--model.no-residual", "--model.norm"]
    assert read_options(words, command="train")[1].spec.model == PatchAttentionModel(norm=True)


def test_settings_that_a_spec_cannot_have_are_left_out() -> None:
    remedy = of({"model.residual": True, "training.clip": 1.0, "training.lr": 0.5, "model.heads": 5})
    assert remedy.settings == {"training.lr": 0.5}  # clip is 1 already, and 5 does not divide the width
    assert remedies.prescribed(remedy, None, None).settings == {}
    assert of({"training.lr": 0.002}).settings == {}


def test_a_remedy_without_settings_cures_nothing() -> None:
    with pytest.raises(InputError, match="the remedy 'pray' has no settings that could be applied"):
        cured_spec(SPEC, Remedy("pray"))


def test_older_remedies_can_be_read() -> None:
    assert from_json(Remedy, {"text": "try", "command": "attnlab", "code": ""}) == Remedy("try", "attnlab")
    remedy = Remedy("try", settings={"training.lr": 1e-3, "model.norm": True, "model.pooling": "min"})
    assert from_json(Remedy, json.loads(json.dumps(to_json(remedy)))) == remedy
    with pytest.raises(SpecError, match="of type str or float or int or bool"):
        from_json(Remedy, {"text": "try", "settings": {"training.lr": None}})


def test_rates_go_to_the_usual_one_from_far_away() -> None:
    adam, muon, sgd = AdamW(), Muon(), SGD(momentum=0.9)
    assert remedies.faster(Training(lr=1e-5, optimiser=adam)) == 4e-3
    assert remedies.faster(Training(lr=2e-3, optimiser=adam)) == 6e-3
    assert remedies.slower(Training(lr=1.0, optimiser=muon)) == 5e-3
    assert remedies.slower(Training(lr=6e-3, optimiser=muon)) == 2e-3
    assert remedies.other_rate(Training(lr=1e-4, optimiser=sgd)) == 0.15
    assert remedies.other_rate(Training(lr=3.0, optimiser=sgd)) == 0.15


def test_defaults_are_those_of_the_kind_of_model() -> None:
    assert remedies.own_default(SPEC, "positions") == {"model.positions": "sinusoidal:base=10000.0"}
    assert remedies.own_default(SPEC, "gain") == {}
    assert remedies.own_default(None, "gain") == {}
    assert remedies.livelier(replace(SPEC, task=DIGITS, model=PatchAttentionModel(gain=0.1))) == {
        "training.lr": 0.00067,
        "training.schedule": remedies.WARMED,
        "model.gain": 1.0,
    }
    many = replace(SPEC, task=replace(SPEC.task, train=9000), training=replace(SPEC.training, epochs=12))
    assert remedies.more_examples(many) == {"task.train": 36_000, "training.epochs": 6}


def test_a_patient_without_a_run_has_nothing_to_set() -> None:
    remedy = Remedy("try", code="x", settings={"training.lr": 0.1})
    assert Patient("none").prescribed(remedy) == Remedy("try", code="x")
