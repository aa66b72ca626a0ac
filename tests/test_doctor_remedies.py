"""Remedies that are settings: each command is parsed, and gives the spec that the settings give."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.cli.train import read_options
from attnlab.doctor import remedies, usual
from attnlab.doctor.findings import Remedy, Settings
from attnlab.doctor.loops import Watched
from attnlab.doctor.patient import Patient
from attnlab.doctor.remedies import cured_spec
from attnlab.errors import InputError, SpecError
from attnlab.presets import preset
from attnlab.runs import LayerSample, Metrics, Observed, Sample
from attnlab.specs import (
    SGD,
    AdamW,
    Constant,
    Cosine,
    Muon,
    OneCycle,
    PatchAttentionModel,
    Spec,
    Training,
    from_json,
    to_json,
)
from attnlab.storage import write_json
from sick_runs import SPEC

SETTINGS: list[Settings] = [
    {"training.lr": 0.03},
    {"training.lr": 0.0067, "training.schedule": usual.WARMED, "training.clip": 2.0},
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


def trained_with(training: Training, first: float | None = None) -> Patient:
    """Somebody whose recipe is known, and the size of the first steps if they were looked at."""
    layer = LayerSample(gradient=1.0, weight=1.0, update=first, inward=0.0)
    samples = [Sample(step, 1.0, training.lr, 1.0, 0.0, {"read": layer}) for step in (1, 2, 4)]
    seen = Observed(total=7, steps=7, starts=[0], samples=samples if first else [], losses=[])
    return Patient("recipe", watched=Watched(seen, Metrics(lines=[]), training, choices=2, ended=True))


def test_rates_go_to_the_usual_one_from_far_away() -> None:
    adam, muon, sgd = AdamW(), Muon(), SGD(momentum=0.9)
    assert usual.faster(trained_with(Training(lr=1e-5, optimiser=adam))) == 4e-3
    assert usual.faster(trained_with(Training(lr=2e-3, optimiser=adam))) == 6e-3
    assert usual.slower(trained_with(Training(lr=1.0, optimiser=muon))) == 5e-3
    assert usual.slower(trained_with(Training(lr=6e-3, optimiser=muon))) == 2e-3
    assert usual.other_rate(trained_with(Training(lr=1e-4, optimiser=sgd))) == 0.15
    assert usual.other_rate(trained_with(Training(lr=3.0, optimiser=sgd))) == 0.15


def test_rates_of_adam_go_by_the_size_of_the_first_steps() -> None:
    adam, sgd = AdamW(), SGD(momentum=0.9)
    assert usual.slower(trained_with(Training(lr=0.5, optimiser=adam), 5.0)) == 2e-3
    assert usual.faster(trained_with(Training(lr=1e-5, optimiser=adam), 2e-4)) == 1e-3
    assert usual.slower(trained_with(Training(lr=0.5, optimiser=sgd), 5.0)) == 0.15


def test_a_schedule_that_warms_up_stays() -> None:
    assert usual.warmed(Training(schedule=OneCycle())) == {}
    assert usual.warmed(Training(schedule=Cosine(warmup=0.05))) == {}
    assert usual.warmed(Training(schedule=Cosine(warmup=0.0))) == {"training.schedule": usual.WARMED}
    assert usual.warmed(Training(schedule=Constant())) == {"training.schedule": usual.WARMED}


def test_defaults_are_those_of_the_task_or_of_the_kind_of_model() -> None:
    assert remedies.own_default(SPEC, "positions") == {"model.positions": "rotary:base=10000.0"}
    assert remedies.own_default(SPEC, "gain") == {}
    assert remedies.own_default(None, "gain") == {}
    many = replace(SPEC, task=replace(SPEC.task, train=9000), training=replace(SPEC.training, epochs=12))
    assert remedies.more_examples(many) == {"task.train": 36_000, "training.epochs": 10}


def test_a_patient_without_a_run_has_nothing_to_set() -> None:
    remedy = Remedy("try", code="x", settings={"training.lr": 0.1})
    assert Patient("none").prescribed(remedy) == Remedy("try", code="x")
