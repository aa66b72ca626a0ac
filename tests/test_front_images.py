"""Runs and ensembles that classify images, from Python."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import attnlab as al
from attnlab.analysis.image_evaluation import DigitEvaluation
from attnlab.analysis.image_maps import Maps
from attnlab.analysis.patterns import Patterns
from attnlab.analysis.samples import ImagePrediction, Refused, Sample
from attnlab.errors import InputError, RunError
from attnlab.front.ensemble import RunEnsemble
from attnlab.images import has_images
from attnlab.results import Table
from commands import attnlab
from tiny_digits import TEST, squares_spec, untrained, write_squares


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on the same images."""
    home = tmp_path_factory.mktemp("images")
    spec = squares_spec(write_squares(home / "squares"))
    for seed in (0, 1):
        torch.manual_seed(seed)
        untrained(home / f"r{seed}", spec)
    return home


@pytest.fixture
def run(home: Path) -> al.Run:
    return al.load(home / "r0")


@pytest.fixture
def image(run: al.Run) -> np.ndarray:
    """The test image number 7."""
    assert has_images(run.task)
    pixels, _ = run.task.pixels("test")
    return pixels[7].numpy()


def forms(image: np.ndarray) -> dict[str, Any]:
    """One image as people may have it."""
    return {
        "bytes": image,
        "fractions": torch.from_numpy(image).float() / 255,
        "long": torch.from_numpy(image).long(),
        "with a channel": image[None],
    }


@pytest.mark.parametrize("form", ["bytes", "fractions", "long", "with a channel"])
def test_an_array_of_the_tasks_size_is_taken_as_it_is(run: al.Run, image: np.ndarray, form: str) -> None:
    by_name = run.predict("test:7")
    found = run.predict(forms(image)[form])
    assert isinstance(found, ImagePrediction)
    assert found.probabilities == by_name.probabilities  # type: ignore[attr-defined]
    assert (found.input, found.correct, found.truth) == ("image 0", None, None)


def test_several_images_give_a_list(run: al.Run, image: np.ndarray, tmp_path: Path) -> None:
    many = run.predict(np.stack([image, 255 - image, image]))
    assert [each.input for each in many] == ["image 0", "image 1", "image 2"]
    assert many[0].probabilities == many[2].probabilities != many[1].probabilities
    Image.fromarray(image).save(tmp_path / "one.png")
    assert [each.input for each in run.predict(tmp_path)] == [str(tmp_path / "one.png")]
    assert [each.input for each in run.predict(["test:1", tmp_path, image])] == [
        "test:1", str(tmp_path / "one.png"), "image 2",
    ]  # fmt: skip


@pytest.mark.parametrize("size", [(97, 89), (28, 28)])
def test_a_picture_in_memory_is_read_as_its_file(
    run: al.Run, image: np.ndarray, size: tuple[int, int], tmp_path: Path
) -> None:
    picture = Image.fromarray(image).resize(size)
    picture.save(tmp_path / "one.png")
    named = run.predict(str(tmp_path / "one.png"))
    content = io.BytesIO()
    picture.save(content, format="PNG")
    same = [picture, content.getvalue()]
    if size != (28, 28):  # of the task's own size an array is no picture
        same += [np.asarray(picture), np.asarray(picture)[None], np.asarray(picture.convert("RGB"))]
    for given in same:
        found = run.predict([given])[0]
        assert found.probabilities == named.probabilities  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (np.full((28, 28), -0.25), "image 0 has pixels from -0.25 to 0; give whole numbers of 0 to 255"),
        (np.full((28, 28), 300), "image 0 has pixels from 0 to 300"),
        (np.full((28, 28), np.nan), "image 0 has pixels from"),
        (np.zeros((2, 3, 5, 7), np.uint8), r"image 0 has the shape \(2, 3, 5, 7\), which is not an image"),
        (3.5, "image 0 is of the type float; give the name of a file"),
        ([], "there is nothing to answer; give at least one image"),
        ("nowhere.png", "no file 'nowhere.png'"),
    ],
)
def test_what_is_no_image_is_refused(run: al.Run, given: Any, text: str) -> None:
    with pytest.raises(al.InputError, match=text):
        run.predict(given)


def test_refused_inputs_can_be_kept(run: al.Run) -> None:
    first, second = run.predict(["nowhere.png", "test:3"], refused="keep")
    assert isinstance(first, Refused)
    assert first.to_json() == {"input": "nowhere.png", "error": str(first.error)}
    assert second.input == "test:3"
    with pytest.raises(al.InputError, match="no file"):
        run.predict(["test:3", "nowhere.png"])


def test_an_answer_shows_its_image(run: al.Run) -> None:
    found = run.predict("test:3")
    (axes,) = found.plot().axes
    assert axes.get_title(loc="center").endswith("\ntest:3")
    assert "<td>test:3</td>" in found._repr_html_()
    assert "sample" not in found.to_json()
    assert ImagePrediction.from_json(found.to_json()) == found


def test_show_gives_images_with_answers(run: al.Run) -> None:
    found = run.show(samples=5, seed=3)
    assert found.wrong is None
    assert list(found.frame().columns) == ["input", "output", "probability", "correct", "truth", "sure"]
    assert found.frame().input.tolist() == [each.input for each in found.samples]
    assert len(found.plot().axes) == 5
    wrong = run.show(samples=TEST, wrong=True)
    assert wrong.wrong == len(wrong.samples)
    assert not wrong.frame().correct.any()
    assert f"misclassifies {wrong.wrong} of {TEST} test images" in wrong._repr_html_()
    with pytest.raises(RunError, match="this needs a run of a task with images"):
        al.load("zoo:adder").show()


def test_an_evaluation_of_images_draws_and_lists_itself(run: al.Run, tmp_path: Path) -> None:
    found = run.evaluate()
    assert list(found.figures()) == ["confusions", "reliability", "coverage", "mistakes"]
    assert isinstance(found, DigitEvaluation)
    assert found.pictures is not None
    assert len(found.plot("mistakes").axes) == len(found.pictures) > 0
    frame = found.frame()
    assert frame["class"].tolist() == ["all", *(row.name for row in found.by_class)]
    assert sum(frame.examples[1:]) == frame.examples[0] == TEST
    read = DigitEvaluation.from_json(json.loads(run.file("analysis/evaluate-test.json").read_text()))
    assert read == found
    assert list(read.figures()) == ["confusions", "reliability", "coverage"]
    files = found.save_figures(tmp_path, prefix="test-")
    assert {path.name for path in files} >= {"test-confusions.svg", "test-mistakes.png"}
    views = run.evaluate(views=5)
    assert isinstance(views, DigitEvaluation)
    assert views.views is not None
    assert views.views.views == 5
    assert any("averaged over 5 views" in part for part in views.tables() if isinstance(part, str))


def test_an_ensemble_answers_like_a_run(home: Path, run: al.Run, tmp_path: Path) -> None:
    made = run.ensemble(home / "r1", out=tmp_path / "both")
    assert isinstance(made, RunEnsemble)
    both = al.load(tmp_path / "both")
    assert both == made
    one, two = run.predict("test:7"), al.load(home / "r1").predict("test:7")
    mean = np.mean([one.probabilities, two.probabilities], axis=0)  # type: ignore[attr-defined, union-attr]
    np.testing.assert_allclose(both.predict("test:7").probabilities, mean, atol=1e-6)
    assert both.evaluate().exact_match == made.scores.test.exact_match
    assert made.scores.frame().run.tolist() == [*(row.run for row in made.scores.members), "together"]
    assert both.show(samples=3).run == "both"
    assert isinstance(both.tables()[0], Table)
    assert both._repr_html_().count("<td>patch-attention</td>") == 2
    assert not (tmp_path / "both/analysis").exists()


def test_what_needs_one_run_is_refused_of_an_ensemble(home: Path, run: al.Run, tmp_path: Path) -> None:
    both = run.ensemble(home / "r1", out=tmp_path / "both")
    with pytest.raises(
        RunError, match=r"is an ensemble, and this needs one run; ensemble\.json names its runs"
    ):
        both.ablate()
    with pytest.raises(AttributeError, match="has no attribute 'knit'"):
        both.knit  # noqa: B018
    with pytest.raises(al.InputError, match="at least 2 different runs; given: 1"):
        run.ensemble(home / "r0")
    (tmp_path / "both/ensemble.json").write_text(json.dumps({"runs": [str(home / "r0")]}))
    with pytest.raises(RunError, match="was never measured"):
        both.scores  # noqa: B018


def test_maps_know_their_images_and_their_numbers(run: al.Run, image: np.ndarray) -> None:
    found = run.maps(["test:7", image], heads="mean")
    assert found.inputs == ["test:7", "image 1"]
    frame = found.frame()
    assert frame.input.tolist() == ["test:7", "image 1"]
    assert frame.peak[0] == frame.peak[1]  # it is the same image
    assert len(found.plot().axes) >= 4
    assert "<td>test:7</td>" in found._repr_html_()
    assert found.to_json().keys() == {"run", "view", "maps"}
    read = Maps.from_json(json.loads(json.dumps(found.to_json())))
    assert read == found
    assert read.figures() == {}
    assert run.maps("test:7", heads="mean").maps == found.maps[:1]
    assert run.maps(np.stack([image, image])).inputs == ["image 0", "image 1"]
    assert run.maps(samples=3, split="valid").inputs == ["valid:0", "valid:1", "valid:2"]
    with pytest.raises(al.InputError, match="samples is 3, but the images are named; give one of the two"):
        run.maps("test:7", samples=3)


def test_maps_follow_what_is_taken_out(run: al.Run) -> None:
    whole = run.maps("test:7", view="received")
    (name,) = {each.map for each in whole.maps}
    with run.without(name):  # a pattern stays where it was; only what it carries is gone
        assert run.maps("test:7", view="received") == whole
    assert not run.edited


def test_patterns_of_images_have_a_row_for_each_weight(run: al.Run) -> None:
    found = run.patterns(head="encoder.0.self.0", examples=2, split="test")
    assert found.examples == ["test:0", "test:1"]
    frame = found.frame()
    assert len(frame) == 2 * 49 * 49
    assert frame.groupby(["example", "query"]).weight.sum().round(4).eq(1).all()
    assert frame.key_token[8] == "1,1"
    assert Patterns.from_json(found.to_json()).figures() == {}


def test_doubtful_answers_are_not_sure(run: al.Run, image: np.ndarray) -> None:
    found = run.predict(image, sure=0.0)
    assert (found.text, found.sure) == (found.output, True)
    chance = found.probability
    assert run.predict(image, sure=chance).sure
    doubtful = run.predict(image, sure=chance + 1e-4)
    assert (doubtful.text, doubtful.sure, doubtful.output) == ("not sure", False, found.output)
    with pytest.raises(
        InputError, match=r"sure is 1.5; it must lie between 0, which always answers, and 1"
    ):
        run.predict(image, sure=1.5)


def test_of_several_cells_the_doubtful_are_marked(run: al.Run) -> None:
    chances = torch.full((3, 10), 0.01)
    for cell, (digit, chance) in enumerate([(4, 0.9), (2, 0.5), (7, 0.8)]):
        chances[cell, digit] = chance
    task: Any = run.task
    sample = Sample(task, "x", torch.zeros(28, 84, dtype=torch.uint8), [4, 2, 7], chances, least=0.7)
    assert (sample.text, sample.output, sample.doubtful) == ("4?7", "427", [1])
    assert replace(sample, least=0.95).text == "not sure"


def test_predict_shows_what_was_read(home: Path) -> None:
    words = ("predict", "r0", "test:3", "--sure", "1")
    plain = attnlab(*words, cwd=home).stdout.splitlines()
    assert len(plain) == 1
    assert plain[0].startswith("test:3 = not sure   (p = ")
    drawn = attnlab(*words, "--picture", cwd=home).stdout.splitlines()
    assert len(drawn) == 9  # a box of 7 lines
    assert any("not sure" in line for line in drawn)
    found = json.loads(attnlab(*words, "--picture", "--json", cwd=home).stdout)
    run = al.load(home / "r0")
    assert found[0]["pixels"] == run.classifier.images("test").pixels[3].tolist()
    assert found[0]["sure"] is False
    assert "pixels" not in json.loads(attnlab(*words, "--json", cwd=home).stdout)[0]
