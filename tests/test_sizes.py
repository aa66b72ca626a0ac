"""What a spec asks for is weighed before anything is built."""

import json
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnlab import cores
from attnlab.errors import SpecError
from attnlab.models import build_model
from attnlab.problems.addition import Addition
from attnlab.problems.sorting import Sorting
from attnlab.specs import (
    CNNModel,
    Learned,
    MLPModel,
    ModelSpec,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    Randomised,
    Seq2SeqModel,
    Spec,
    TokensModel,
    VitModel,
    to_json,
)
from attnlab.specs.sizes import check_model, check_sizes, parameters
from commands import attnlab, complaint

MODELS: list[ModelSpec] = [
    Seq2SeqModel(width=66, heads=3, hidden=71, encoder_layers=3, decoder_layers=2),
    TokensModel(width=66, heads=3, hidden=71, layers=5),
    TokensModel(width=66, heads=3, hidden=71, layers=2, positions=Learned(length=501)),
    TokensModel(width=66, heads=3, layers=2, positions=Randomised(inner="learned", limit=501)),
    TokensModel(width=66, heads=3, hidden=71, layers=3, head_counts=(1, 0, 2)),
    VitModel(width=64, heads=4, hidden=71, layers=3, patch=7),
    PatchSeq2SeqModel(width=64, heads=4, hidden=71, encoder_layers=2, decoder_layers=1),
    PatchAttentionModel(width=64, hidden=701),
]


@pytest.mark.parametrize("spec", MODELS)
def test_parameters_are_estimated_from_below(spec: ModelSpec) -> None:
    count = sum(each.numel() for each in build_model(spec, vocabulary=5).parameters())
    assert 0.75 * count < parameters(spec) <= count


@pytest.mark.parametrize("spec", [MLPModel(hidden=7), CNNModel(filters=3, kernel=5)])
def test_models_whose_size_hangs_on_images_are_estimated_from_far_below(spec: ModelSpec) -> None:
    assert parameters(spec) <= sum(each.numel() for each in build_model(spec, vocabulary=5).parameters())


def test_the_memory_there_is_bounds_models_and_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    model = TokensModel(width=1000, heads=10, hidden=1000, layers=10)
    task = Sorting(train=1000, valid=1, test=1, high=100)
    spec = Spec(task=task, model=model)
    there = 4 * parameters(model)
    monkeypatch.setattr("attnlab.specs.sizes.memory", lambda: there)
    check_model(model)
    there -= 1
    with pytest.raises(SpecError, match=r"^a model of at least 60,010,000 parameters would take 0\.2 GiB"):
        check_model(model)
    there = 5 * 4 * parameters(model)
    check_sizes(spec)
    with pytest.raises(SpecError, match=r"^100,000,002 examples of the task sorting would take 74\.5 GiB"):
        check_sizes(replace(spec, task=replace(task, train=10**8)))
    there -= 1
    with pytest.raises(SpecError, match=r"parameters would take 1\.1 GiB of memory"):
        check_sizes(spec)


def test_sums_are_no_more_than_there_are() -> None:
    assert Addition(digits=1, train=10**8, valid=1, test=1).stored_numbers == 55 * (3 + 2 * 3)
    assert Addition(digits=12, train=10, valid=1, test=1).stored_numbers == 12 * (25 + 2 * 14)


def test_memory_is_that_of_the_machine_its_container_and_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "_CONTAINER", tmp_path / "memory.max")
    whole = cores.memory()
    assert 2**28 < whole < 2**60
    (tmp_path / "memory.max").write_text("max\n")
    assert cores.memory() == whole
    (tmp_path / "memory.max").write_text("1000000\n")
    assert cores.memory() == 1_000_000
    monkeypatch.setattr(resource, "getrlimit", lambda _: (999_999, 10**9))
    assert cores.memory() == 999_999


HUGE: list[tuple[dict[str, Any], str]] = [
    ({"model.encoder_layers": 2_000_000}, "encoder_layers is 2000000, but it must be from 1 to 1,000"),
    (
        {"model.decoder_layers": 2**63},
        f"decoder_layers is {2**63}, but it must be a whole number",
    ),
    ({"task.train": 10**11}, "task.train is 100000000000, but it must be at most 1,000,000,000"),
    ({"task.train": 10**8, "task.digits": 12}, "100,004,000 examples of the task addition would take"),
    ({"model.width": 2**62}, "parameters would take more than 2^70 bytes of memory, but this machine has"),
    ({"model.hidden": 2**50}, "parameters would take"),
    ({"model.positions": {"kind": "learned", "length": 2**40, "scale": 0.02}}, "parameters would take"),
]


@pytest.mark.parametrize(("changes", "said"), HUGE)
def test_specs_beyond_the_machine_are_refused_in_one_sentence(
    changes: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is built, and without a folder of a run that cannot be trained."""
    monkeypatch.setattr("attnlab.models.build._build", None)
    monkeypatch.setattr("attnlab.specs.sizes.memory", lambda: 24 * 2**30)
    spec = to_json(Spec(task=Addition(), model=Seq2SeqModel()))
    for key, value in changes.items():
        part, name = key.split(".")
        spec[part][name] = value
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    refused = complaint("train", "--spec", "spec.json", "--out", "made", cwd=tmp_path)
    assert said in refused
    assert len(refused) < 400
    assert not (tmp_path / "made").exists()


def test_a_run_of_somebody_else_is_weighed_before_its_model_is_built(tmp_path: Path) -> None:
    spec = to_json(Spec(task=Addition(), model=Seq2SeqModel()))
    spec["model"]["width"] = 2**40
    (tmp_path / "run").mkdir()
    (tmp_path / "run/spec.json").write_text(json.dumps(spec))
    refused = attnlab("predict", "run", "1+1", cwd=tmp_path, code=2).stderr.splitlines()[-1]
    assert "parameters would take more than 2^70 bytes of memory" in refused
