"""Ensembles: averages are averages, the best are best on validation images, folders answer like runs."""

import json
from pathlib import Path

import pytest
import torch

from attnlab.analysis.image_classifier import (
    ImageClassifier,
    Member,
    image_classifier,
    join_classifiers,
    open_classifier,
)
from attnlab.analysis.image_evaluation import Disagreement, disagreement, measure_ensemble
from attnlab.errors import InputError, RunError
from attnlab.models import build_model
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.runs import Ensemble, RunFolder, create_ensemble, find_ensemble
from attnlab.specs import MLPModel, PatchSeq2SeqModel, Spec
from commands import attnlab, complaint
from tiny_digits import TEST, untrained, write_squares


def made(folder: Path, name: str, seed: int, **task: int) -> RunFolder:
    spec = Spec(
        task=Digits(directory=str(write_squares(folder / "squares")), **task),  # type: ignore[arg-type]
        model=MLPModel(hidden=5),
    )
    torch.manual_seed(seed)
    return untrained(folder / name, spec)


def test_together_is_the_mean_of_probabilities(tmp_path: Path) -> None:
    readers = [image_classifier(made(tmp_path, f"r{seed}", seed)) for seed in range(3)]
    pixels = readers[0].images("test").pixels
    each = torch.stack([reader.predict_proba(pixels) for reader in readers])
    assert torch.allclose(
        join_classifiers("all", readers).predict_proba(pixels), each.mean(dim=0), atol=1e-6
    )


def test_the_best_on_validation_images_are_taken(tmp_path: Path) -> None:
    readers = [image_classifier(made(tmp_path, f"r{seed}", seed)) for seed in range(5)]
    chosen, found = measure_ensemble(readers, best=2)
    valid = readers[0].images("valid")
    right = [
        (reader.predict_proba(valid.pixels)[:, 0].argmax(dim=1) == valid.truth[:, 0]).double().mean().item()
        for reader in readers
    ]
    assert sorted((right[i] for i in chosen), reverse=True) == sorted(right, reverse=True)[:2]
    assert [row.chosen for row in found.members] == [True, True, False, False, False]
    pixels, truth = readers[0].images("test").pixels, readers[0].images("test").truth
    said = join_classifiers("both", [readers[i] for i in chosen]).predict_proba(pixels)
    assert found.test.examples == TEST
    assert found.test.exact_match == (said.argmax(dim=-1) == truth).double().mean().item()
    mended, spoiled = found.against_the_best.mended, found.against_the_best.spoiled
    alone = found.members[0].test.exact_match
    assert mended - spoiled == round((found.test.exact_match - alone) * TEST)
    for best in (-1, 1, 6):
        with pytest.raises(InputError, match=f"best is {best}; it must be from 2 to 5"):
            measure_ensemble(readers, best=best)


def test_disagreement_is_counted_by_image() -> None:
    answers = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4], [0, 5, 2, 4]])
    said = [torch.nn.functional.one_hot(row, 10).float()[:, None] for row in answers]
    found = disagreement(said)
    assert found.pairs == pytest.approx((1 / 4 + 2 / 4 + 1 / 4) / 3)
    assert found.any == 0.5
    assert disagreement(said[:1]) == Disagreement(0.0, 0.0)


def test_grids_are_said_together(tmp_path: Path) -> None:
    """Each digit by the mean probability, given the digits that all have said before."""
    task = Grids(rows=1, columns=3, test=7, directory=str(write_squares(tmp_path)))
    models = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        spec = PatchSeq2SeqModel(rows=1, columns=3, width=8, heads=2)
        models.append(build_model(spec, vocabulary=11).eval())
    reader = ImageClassifier("two", task, tuple(Member("m", model, task.scale) for model in models))
    said = reader.predict_proba(reader.images("test").pixels)
    fed = torch.cat((torch.full((7, 1), 10), said.argmax(dim=-1)[:, :2]), dim=1)
    images = task.splits(0).test.inputs[0]
    wanted = torch.stack([model(images, fed)[..., :10].softmax(dim=-1) for model in models]).mean(dim=0)
    assert torch.allclose(said, wanted, atol=1e-5)


def test_a_folder_of_names_is_a_reader(tmp_path: Path) -> None:
    runs = [made(tmp_path, f"r{seed}", seed) for seed in range(2)]
    create_ensemble(tmp_path / "both", runs, {"note": 1})
    kept = json.loads((tmp_path / "both/ensemble.json").read_text())
    assert kept == {"note": 1, "runs": ["../r0", "../r1"]}
    reader = open_classifier(Ensemble(tmp_path / "both"))
    assert [member.name for member in reader.members] == ["r0", "r1"]
    assert find_ensemble(str(runs[0].path)) is None
    with pytest.raises(RunError, match="exists already and is not empty"):
        create_ensemble(tmp_path / "both", runs, {})
    (tmp_path / "r1").rename(tmp_path / "moved")
    with pytest.raises(RunError, match=r"names a run that is not there: no run at .*r1'"):
        open_classifier(Ensemble(tmp_path / "both"))
    (tmp_path / "both/ensemble.json").write_text('{"runs": []}')
    with pytest.raises(RunError, match=r"is damaged: ensemble.json cannot be read \(it names no runs\)"):
        open_classifier(Ensemble(tmp_path / "both"))


def test_readers_of_different_images_do_not_go_together(tmp_path: Path) -> None:
    one, other = (image_classifier(made(tmp_path, f"r{test}", 0, test=test)) for test in (61, 60))
    with pytest.raises(RunError, match="runs r61 and r60 do not read the same images"):
        join_classifiers("both", [one, other])


def test_ensembles_as_users_make_them(tmp_path: Path) -> None:
    for seed in range(2):
        made(tmp_path, f"r{seed}", seed)
    out = attnlab("ensemble", "r0", "r1", "--out", "both", cwd=tmp_path).stdout
    assert "together" in out
    assert "two of the runs differ on" in out
    told = json.loads(attnlab("predict", "both", "test:0", "--json", cwd=tmp_path).stdout)
    assert sum(told[0]["probabilities"][0]) == pytest.approx(1)
    found = json.loads(attnlab("evaluate", "both", "--json", cwd=tmp_path).stdout)
    kept = json.loads((tmp_path / "both/ensemble.json").read_text())
    assert found["accuracy"] == kept["test"]["exact_match"]
    assert found["calibration"]["ece"] == pytest.approx(kept["test"]["ece"], abs=1e-6)
    assert (tmp_path / "both/figures/test-reliability.svg").exists()
    for same in ("r0", "./r0"):
        assert "at least 2 different runs; given: 1" in complaint("ensemble", "r0", same, cwd=tmp_path)


def test_a_taken_folder_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(2):
        made(tmp_path, f"r{seed}", seed)
    monkeypatch.setattr("attnlab.analysis.image_evaluation.measure_ensemble", None)
    said = complaint("ensemble", "r0", "r1", "--out", "r0", cwd=tmp_path)
    assert said == "r0 exists already and is not empty; choose another folder for out"
