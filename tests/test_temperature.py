"""The temperature of a run: fitted on validation data, kept in the summary, used for every probability."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import attnlab as al
from attnlab.analysis.image_classifier import image_classifier, join_classifiers
from attnlab.analysis.predict import probability
from attnlab.errors import InputError, RunError
from attnlab.explorer.bench import Bench
from attnlab.explorer.scene import ExampleInput, Question
from attnlab.model import Model
from attnlab.runs import RunFolder, load_model
from attnlab.runs.files import SUMMARY
from attnlab.storage import as_json
from attnlab.training.temperature import LARGEST, answers_of, fit_temperature
from tiny_runs import train_four


def logits_and_targets(temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Targets drawn as logits over ``temperature`` say."""
    generator = torch.Generator().manual_seed(3)
    logits = 4 * torch.randn(20_011, 7, generator=generator)
    return logits, (logits / temperature).softmax(dim=-1).multinomial(1, generator=generator)[:, 0]


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_the_temperature_is_that_of_which_targets_were_drawn(temperature: float) -> None:
    logits, targets = logits_and_targets(temperature)
    found = fit_temperature(logits, targets)
    assert found == pytest.approx(temperature, rel=0.03)
    assert fit_temperature(5 * logits, targets) == pytest.approx(5 * found, rel=1e-4)


def test_the_loss_is_the_lowest() -> None:
    logits, targets = logits_and_targets(2.0)
    found = fit_temperature(logits, targets)
    losses = [
        torch.nn.functional.cross_entropy(logits.double() / (found * by), targets) for by in (0.99, 1, 1.01)
    ]
    assert losses[1] == min(losses)


def test_without_a_mistake_there_is_nothing_to_fit_and_with_nothing_else_a_bound() -> None:
    logits = torch.eye(5)
    assert fit_temperature(logits, torch.arange(5)) == 1.0
    assert fit_temperature(logits, torch.arange(5).roll(1)) == pytest.approx(LARGEST, rel=1e-3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    return train_four(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("name", ["adder", "sorter", "digit", "grid"])
def test_training_fits_it_on_validation_data(runs: dict[str, RunFolder], name: str) -> None:
    run = runs[name]
    spec = run.spec()
    answers = answers_of(spec.task, load_model(run), spec.task.splits(spec.seed).valid)
    wanted = fit_temperature(*answers)
    assert run.temperature == run.model.temperature == pytest.approx(wanted, rel=1e-5) != 1
    assert (run.summary() or {})["temperature"] == run.temperature
    assert load_model(run, "last").temperature == 1.0


def test_every_probability_is_that_of_divided_logits(runs: dict[str, RunFolder]) -> None:
    run = al.load(runs["digit"].path)
    pixels = run.classifier.images("test").pixels
    said = run.classifier.predict_proba(pixels)[:, 0]
    plain = run.model(run.classifier.members[0].scaled(pixels)).detach()
    wanted = (plain / run.temperature).softmax(dim=-1)
    assert torch.allclose(said, wanted, atol=1e-6)
    assert torch.equal(said.argmax(dim=-1), plain.argmax(dim=-1))
    answer = Bench.of_run(run).look(Question(ExampleInput("test", 3))).answer
    assert answer.probability == pytest.approx(wanted[3].max().item(), rel=1e-5)
    twice = join_classifiers("both", [run.classifier, image_classifier(runs["digit"])])
    assert torch.allclose(twice.predict_proba(pixels)[:, 0], said)


@pytest.mark.parametrize("name", ["adder", "sorter", "grid"])
def test_answers_tell_the_same_probability_by_every_way(runs: dict[str, RunFolder], name: str) -> None:
    run = al.load(runs[name].path)
    task, model = run.task, run.model
    examples = task.splits(run.spec().seed).test[slice(0, 5)]
    said, sure = model.answer_surely(examples.inputs[0], start=task.start, length=examples.answer_length)
    by_pass = probability(task, model, examples, said.cpu())
    assert torch.allclose(sure, by_pass, rtol=1e-4)
    if task.start is not None:  # the definition in the base class
        tokens, plain = Model.answer_surely(
            model, examples.inputs[0], start=task.start, length=examples.answer_length
        )
        assert torch.equal(tokens, said)
        assert torch.allclose(plain, sure, rtol=1e-4)


def test_an_older_run_is_as_it_was_until_it_is_calibrated(
    runs: dict[str, RunFolder], tmp_path: Path
) -> None:
    shutil.copytree(runs["digit"].path, tmp_path / "old")
    old, fitted = RunFolder(tmp_path / "old"), runs["digit"].temperature
    summary = {key: value for key, value in (old.summary() or {}).items() if key != "temperature"}
    old.write({SUMMARY: as_json(summary)})
    run = al.load(old.path)
    before: Any = run.evaluate(split="valid")
    assert run.temperature == run.model.temperature == 1.0
    found = run.calibrate()
    assert found.temperature == run.temperature == run.model.temperature == pytest.approx(fitted, rel=1e-5)
    assert found.after.loss < found.before.loss
    assert not list((old.path / "analysis").glob("*"))  # they told other probabilities
    after: Any = run.evaluate(split="valid")
    assert (after.exact_match, after.confusion) == (before.exact_match, before.confusion)
    assert after.loss == pytest.approx(found.after.loss, rel=1e-5)
    assert before.loss == pytest.approx(found.before.loss, rel=1e-5)
    assert run.calibrate().before == run.calibrate().after == found.after
    assert json.loads((old.path / SUMMARY).read_text()) == {**summary, "temperature": run.temperature}


def test_what_cannot_be_calibrated(runs: dict[str, RunFolder], tmp_path: Path) -> None:
    shutil.copytree(runs["digit"].path, tmp_path / "begun")
    RunFolder(tmp_path / "begun").remove(SUMMARY)
    with pytest.raises(RunError, match="has not ended; resume it, which calibrates it"):
        al.load(tmp_path / "begun").calibrate()
    with pytest.raises(InputError, match="zoo:digit is shipped and keeps its temperature, 0"):
        al.load("zoo:digit").calibrate()
