"""Calibration, mistakes and likely wrong labels, on answers whose truth is planted."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attnlab.analysis.image_classifier import ImageClassifier, Images, Member, cut_cells, image_classifier
from attnlab.analysis.image_evaluation import (
    DigitEvaluation,
    GridEvaluation,
    evaluate_reader,
    log_loss,
    measure_calibration,
    measure_coverage,
)
from attnlab.analysis.mistakes import (
    SHOWN,
    ImageMistake,
    ImageMistakes,
    find_mistakes,
    gallery,
    nearest_labels,
)
from attnlab.figures.image_evaluation import (
    Gallery,
    caption,
    coverage_data,
    draw_coverage,
    draw_mistakes,
    draw_reliability,
    mistakes_data,
    reliability_data,
)
from attnlab.figures.style import to_png
from attnlab.model import Model
from attnlab.models import build_model
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.specs import PatchSeq2SeqModel
from attnlab.tables.image_evaluation import counted
from attnlab.training.measuring import measure
from commands import attnlab
from tiny_digits import TEST, squares, untrained_digits, write_squares


def chances_of(sure: list[float], answers: list[int]) -> Tensor:
    """(N, 1, 10): the answer has its probability, all others share the rest."""
    said = torch.tensor(sure)[:, None].sub(1).neg().div(9).repeat(1, 10)
    said[torch.arange(len(sure)), torch.tensor(answers)] = torch.tensor(sure)
    return said[:, None]


def test_the_calibration_error_is_what_one_counts_by_hand() -> None:
    said = chances_of([0.95, 0.95, 0.95, 0.95, 0.55, 0.55, 1.0], [3, 3, 3, 3, 7, 7, 1])
    truth = torch.tensor([3, 3, 3, 5, 7, 0, 1])[:, None]
    found = measure_calibration(said, truth, bins=10)
    # 0.95 and 1.0 share the last bin: 4 of 5 right at 0.96; 0.55: 1 of 2 right.
    assert found.ece == pytest.approx(5 / 7 * abs(0.8 - 0.96) + 2 / 7 * abs(0.5 - 0.55))
    counts = {row.low: row.count for row in found.bins}
    assert (counts[0.9], counts[0.5], sum(counts.values())) == (5, 2, 7)
    assert found.confidence == pytest.approx(5.9 / 7)
    assert found.accuracy == pytest.approx(5 / 7)
    data = reliability_data(found)
    assert data.count == [2, 5]
    assert data.accuracy == pytest.approx([50, 80])
    assert to_png(draw_reliability(data)).startswith(b"\x89PNG")


def test_what_leaving_out_answers_gives_is_what_one_counts_by_hand() -> None:
    said = chances_of([0.95, 0.9, 0.62, 0.45, 0.35], [3, 3, 3, 7, 7])
    found = measure_coverage(said, torch.tensor([3, 3, 5, 7, 0])[:, None])
    rows = {row.threshold: (row.answered, row.accuracy) for row in found}
    assert rows[0.0] == (1.0, 3 / 5)
    assert rows[0.4] == (4 / 5, 3 / 4)
    assert rows[0.7] == (2 / 5, 1.0)
    assert rows[0.99] == (0.0, None)
    data = coverage_data(found)
    assert (data.threshold[0], data.answered[-1], data.accuracy[-1]) == (0, 20, 100)
    assert to_png(draw_coverage(data)).startswith(b"\x89PNG")


def test_answers_that_are_as_sure_as_right_are_calibrated() -> None:
    generator = torch.Generator().manual_seed(5)
    said = torch.rand(20_011, 3, 10, generator=generator).mul(4).softmax(dim=-1)
    truth = said.flatten(0, 1).multinomial(1, generator=generator).reshape(20_011, 3)
    assert measure_calibration(said, truth).ece < 0.01
    assert measure_calibration(said.pow(3) / said.pow(3).sum(dim=-1, keepdim=True), truth).ece > 0.1


def test_the_loss_is_that_of_the_truth() -> None:
    said = chances_of([0.9, 0.1], [2, 2])
    assert log_loss(said, torch.tensor([[2], [5]])) == pytest.approx(
        -(torch.tensor([0.9, 0.1]).log().mean()).item()
    )


@pytest.fixture
def squares_reader(tmp_path: Path) -> ImageClassifier:
    task = Digits(directory=str(write_squares(tmp_path / "squares")))
    return ImageClassifier("squares", task, (Member("none", Model(), (0.0, 1.0)),))


def test_planted_wrong_labels_are_found_and_plain_mistakes_are_not(squares_reader: ImageClassifier) -> None:
    """Training squares tell their class by their place, so a label that contradicts them is a wrong one."""
    images = squares_reader.images("test")
    truth = images.truth.clone()
    planted, mistaken, unsure = 4, 11, 23
    truth[planted, 0] = (truth[planted, 0] + 3) % 10
    answers, sure = images.truth[:, 0].clone(), [0.9] * TEST
    answers[mistaken] = (answers[mistaken] + 5) % 10
    sure[planted], sure[mistaken], sure[unsure] = 0.99, 0.999, 0.3
    truth[unsure, 0] = (truth[unsure, 0] + 1) % 10
    said = chances_of(sure, answers.tolist())
    found = find_mistakes(squares_reader, "test", Images(images.pixels, truth), said)
    assert (found.count, found.likely_mislabelled) == (3, 1)
    assert [(row.input, row.likely_mislabelled) for row in found.worst] == [
        (f"test:{mistaken}", False),
        (f"test:{planted}", True),
        (f"test:{unsure}", False),
    ]
    assert found.worst[1].truth == int(truth[planted, 0])
    assert found.worst[1].answer == int(images.truth[planted, 0])
    data = mistakes_data(images.pixels[[mistaken, planted, unsure]], found.worst)
    assert data.mistakes[1].image == images.pixels[planted].tolist()
    assert to_png(draw_mistakes(data)).startswith(b"\x89PNG")
    assert to_png(draw_mistakes(Gallery([]))).startswith(b"\x89PNG")


def mistakes(marked: set[int], count: int) -> list[ImageMistake]:
    """Mistakes in the order of their probabilities, some of them marked."""
    return [
        ImageMistake(
            input=f"test:{place}",
            cell=1,
            name=f"test:{place}, digit 2",
            truth=4,
            answer=9,
            labelled="4",
            read_as="9",
            probability=1 - place / 1000,
            likely_mislabelled=place in marked,
            again=False,
        )
        for place in range(count)
    ]


def test_marked_mistakes_have_a_place_in_the_gallery() -> None:
    assert [row.input for row in gallery(mistakes({3, 97, 211}, 300))] == [
        f"test:{place}" for place in (*range(SHOWN - 2), 97, 211)
    ]
    assert gallery(mistakes(set(), 7)) == mistakes(set(), 7)
    assert len(gallery(mistakes(set(range(101)), 300))) == SHOWN


def test_captions_name_the_cell() -> None:
    plain, marked = mistakes({1}, 2)
    assert caption(plain) == "4 read as 9, 100.0%\ntest:0, digit 2"
    assert caption(marked) == "4 read as 9, 99.9% ?\ntest:1, digit 2"


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ((12, 12, 12, 3, 3), "12 digits misclassified, 3 of them likely mislabelled"),
        (
            (4_321, 1_009, 300, 13, 5),
            "4,321 digits misclassified (1,009 different ones), 13 (5 different ones) of the 300 most "
            "confident, which alone were looked at, likely mislabelled",
        ),
    ],
)
def test_it_is_said_how_many_were_looked_at_and_are_different(
    numbers: tuple[int, int, int, int, int], told: str
) -> None:
    assert counted(ImageMistakes(*numbers, []), "digit") == told


def test_a_digit_in_several_grids_is_one_digit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids 0 and 2 show the same digits, and the second digit of every grid is read wrongly."""
    spec = Grids(rows=1, columns=2, directory=str(write_squares(tmp_path)))
    reader = ImageClassifier("grids", spec, (Member("none", Model(), (0.0, 1.0)),))
    digits, labels = squares(4, 2)
    chosen = torch.tensor([[0, 1], [2, 3], [0, 1]])
    pixels = digits[chosen].transpose(1, 2).reshape(3, 28, 56)
    truth = labels[chosen].long()
    answers = truth.clone()
    answers[:, 1] = (answers[:, 1] + 1) % 10
    said = chances_of([0.9] * 6, answers.flatten().tolist()).reshape(3, 2, 10)
    monkeypatch.setattr("attnlab.analysis.mistakes.LOOKED_AT", 2)
    found = find_mistakes(reader, "test", Images(pixels, truth), said)
    assert (found.count, found.distinct, found.looked_at) == (3, 2, 2)
    assert (found.likely_mislabelled, found.distinct_mislabelled) == (0, 0)
    assert [row.name for row in found.worst] == [f"test:{place}, digit 2" for place in range(3)]
    assert [row.again for row in found.worst] == [False, False, True]
    assert [row.input for row in gallery(found.worst)] == ["test:0", "test:1"]


def test_a_training_digit_is_not_its_own_neighbour(squares_reader: ImageClassifier) -> None:
    """Its own label would always speak for itself."""
    images = squares_reader.images("train")
    said = chances_of([0.9] * len(images.truth), images.truth[:, 0].tolist())
    truth = images.truth.clone()
    truth[6, 0] = (truth[6, 0] + 3) % 10
    pixels, labels = squares_reader.task.cell_pixels("train")
    labels = labels.clone()
    labels[6] = truth[6, 0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Digits, "cell_pixels", lambda *_: (pixels, labels))
        found = find_mistakes(squares_reader, "train", Images(images.pixels, truth), said)
    assert (found.count, found.likely_mislabelled) == (1, 1)


def test_neighbours_are_the_nearest_also_over_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    known, labels = squares(97, 3)
    asked, _ = squares(7, 4)
    apart = torch.cdist(asked.flatten(1).double(), known.flatten(1).double())
    wanted = labels.long()[apart.topk(10, largest=False).indices]
    assert torch.equal(nearest_labels(asked, known, labels.long()), wanted)
    monkeypatch.setattr("attnlab.analysis.mistakes._PART", 13)
    assert torch.equal(nearest_labels(asked, known, labels.long()), wanted)


def test_cells_are_cut_where_they_are() -> None:
    pixels = torch.arange(5 * 56 * 84).reshape(5, 56, 84).remainder(251).to(torch.uint8)
    cells = torch.tensor([0, 2, 3, 4, 5])
    cut = cut_cells(pixels, Grids(rows=2, columns=3))[torch.arange(5), cells // 3, cells % 3]
    for digit, image, (top, left) in zip(
        cut, pixels, ((0, 0), (0, 56), (28, 0), (28, 28), (28, 56)), strict=True
    ):
        assert torch.equal(digit, image[top : top + 28, left : left + 28])


def test_readers_are_evaluated_like_their_models(tmp_path: Path) -> None:
    reader = image_classifier(untrained_digits(tmp_path))
    found = evaluate_reader(reader)
    assert isinstance(found, DigitEvaluation)
    test = Digits(directory=str(tmp_path / "squares")).splits(0).test
    plain = measure(reader.members[0].model, test)
    assert found.loss == pytest.approx(plain.loss, rel=1e-5)
    assert found.exact_match == plain.exact_match
    assert found.accuracy == found.exact_match == found.calibration.accuracy
    assert found.mistakes.count == round((1 - found.accuracy) * TEST)


def test_grids_are_evaluated_by_cell(tmp_path: Path) -> None:
    task = Grids(rows=1, columns=3, test=17, directory=str(write_squares(tmp_path)))
    model = build_model(PatchSeq2SeqModel(rows=1, columns=3, width=8, heads=2), vocabulary=11).eval()
    member = Member("one", model, task.scale)
    found = evaluate_reader(ImageClassifier("grids", task, (member,)))
    assert isinstance(found, GridEvaluation)
    assert [row.cell for row in found.by_cell] == ["0,0", "0,1", "0,2"]
    assert found.digit_accuracy == pytest.approx(found.calibration.accuracy)
    assert found.mistakes.count == round((1 - found.digit_accuracy) * 17 * 3)
    assert set(found.to_json()["teacher_forced"]) == {"exact_match", "token_accuracy", "loss"}
    twice = evaluate_reader(ImageClassifier("two", task, (member, member)))
    assert "teacher_forced" not in twice.to_json()
    assert GridEvaluation.from_json(found.to_json()) == found
    assert twice.confusion == found.confusion


@pytest.mark.slow
def test_evaluate_prints_and_draws(tmp_path: Path) -> None:
    run = untrained_digits(tmp_path)
    done = attnlab("evaluate", run.path, cwd=tmp_path)
    for words in ("confusions: a row is", "expected calibration error", "likely mislabelled"):
        assert words in done.stdout
    names = {path.name for path in (run.path / "figures").iterdir()}
    assert {f"test-{what}.png" for what in ("confusions", "reliability", "mistakes")} <= names
    drawn = json.loads((run.path / "figures/test-mistakes.json").read_text())["mistakes"]
    assert 0 < len(drawn) <= 40
    assert len(drawn[0]["image"]) == 28
