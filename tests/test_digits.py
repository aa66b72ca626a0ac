"""The task of reading digits: what is learned from, what is chosen by, and how pixels are scaled."""

from pathlib import Path

import pytest
import torch

from attnlab.analysis.image_classifier import ImageClassifier, Member
from attnlab.analysis.image_evaluation import evaluate_reader
from attnlab.errors import InputError, SpecError
from attnlab.models import build_model
from attnlab.problems.addition import Addition
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.specs import Augment, CNNModel, MLPModel, Muon, PatchAttentionModel, Spec, Training
from attnlab.training.optimisers import hidden_matrices
from tiny_digits import TEST, TRAIN, squares, write_squares


def test_the_parting_is_the_same_for_every_seed_and_complete(tmp_path: Path) -> None:
    task = Digits(directory=str(write_squares(tmp_path)))
    first, other = task.splits(0), task.splits(7)
    assert torch.equal(first.valid.inputs[0], other.valid.inputs[0])
    assert (len(first.train), len(first.valid), len(first.test)) == (TRAIN * 9 // 10, TRAIN // 10, TEST)
    both = torch.cat((first.train.inputs[0], first.valid.inputs[0])).flatten(1)
    images, _ = squares(TRAIN, 1)
    assert sorted(both.mul(255).round().sum(dim=1).tolist()) == sorted(
        images.float().flatten(1).sum(dim=1).tolist()
    )
    assert not torch.equal(first.train.targets, squares(TRAIN, 1)[1][: len(first.train)])


def test_labels_stay_with_their_images(tmp_path: Path) -> None:
    task = Digits(directory=str(write_squares(tmp_path)))
    for examples in (task.splits(0).train, task.splits(0).valid, task.splits(0).test):
        for image, label in zip(examples.inputs[0], examples.targets.tolist(), strict=True):
            row, column = 4 + 9 * (label // 4), 1 + 7 * (label % 4)
            assert image[row : row + 6, column : column + 6].min() > 0.7


def test_fewer_images_are_the_first_of_them(tmp_path: Path) -> None:
    folder = str(write_squares(tmp_path))
    every = Digits(directory=folder).splits(0)
    few = Digits(directory=folder, train=11, valid=3, test=5).splits(0)
    assert (len(few.train), len(few.valid), len(few.test)) == (11, 3, 5)
    assert torch.equal(few.train.inputs[0], every.train.inputs[0][:11])
    assert torch.equal(few.valid.inputs[0], every.valid.inputs[0][:3])


@pytest.mark.parametrize("scaling", ["unit", "signed", "standard"])
def test_pixels_are_scaled(scaling: str, tmp_path: Path) -> None:
    spec = Digits(directory=str(write_squares(tmp_path)), scaling=scaling)  # type: ignore[arg-type]
    pixels = spec.splits(0).train.inputs[0]
    assert pixels.dtype == torch.float32
    match scaling:
        case "unit":
            assert 0 <= pixels.min() < 0.01 < 0.9 < pixels.max() <= 1
        case "signed":
            assert -1 <= pixels.min() < -0.99 < 0.8 < pixels.max() <= 1
        case "standard":
            assert abs(pixels.mean()) < 1e-5
            assert abs(pixels.std() - 1) < 1e-3


def test_evaluation_counts(tmp_path: Path) -> None:
    task = Digits(directory=str(write_squares(tmp_path)))
    torch.manual_seed(0)
    model = build_model(PatchAttentionModel(), vocabulary=10).eval()
    found = evaluate_reader(ImageClassifier("one", task, (Member("one", model, task.scale),))).to_json()
    examples = task.splits(0).test
    said = model(examples.inputs[0]).argmax(dim=1)
    assert found["examples"] == TEST
    assert found["exact_match"] == (said == examples.targets).double().mean().item()
    assert sum(map(sum, found["confusion"])) == TEST
    assert sum(found["confusion"][d][d] for d in range(10)) == round(found["exact_match"] * TEST)
    assert sum(row["examples"] for row in found["by_class"]) == TEST
    assert found["confusion"][3][int(said[examples.targets == 3][0])] > 0


def test_too_few_images_to_choose_by(tmp_path: Path) -> None:
    folder = write_squares(tmp_path, train=9)
    for spec in (Digits(directory=str(folder)), Grids(directory=str(folder))):
        with pytest.raises(InputError, match="has 9 training images; at least 10 are needed"):
            spec.splits(0)


@pytest.mark.parametrize("kind", [MLPModel, CNNModel, PatchAttentionModel])
def test_muon_needs_blocks(kind: type[MLPModel | CNNModel | PatchAttentionModel]) -> None:
    words = "matrices of transformer blocks and kernels between channels, and model '.*' has neither; use"
    with pytest.raises(SpecError, match=words):
        Spec(task=Digits(), model=kind(), training=Training(optimiser=Muon()))


@pytest.mark.parametrize("model", [MLPModel(), CNNModel()])
def test_muon_would_have_nothing_to_train(model: MLPModel | CNNModel) -> None:
    assert hidden_matrices(build_model(model, vocabulary=10)) == []


def test_only_training_images_are_altered(tmp_path: Path) -> None:
    folder = str(write_squares(tmp_path))
    altered, plain = (
        Digits(directory=folder, augment=each).splits(0) for each in (Augment(shift=4.0), Augment())
    )
    for split in ("valid", "test"):
        assert torch.equal(getattr(altered, split).inputs[0], getattr(plain, split).inputs[0])
    assert plain.augment is None
    assert altered.augment is not None
    batch = plain.train[slice(0, 5)]
    assert not torch.equal(altered.augment(batch, 3).inputs[0], batch.inputs[0])


def test_a_model_must_fit_its_task() -> None:
    with pytest.raises(SpecError, match="model 'seq2seq' cannot do the task 'digits'"):
        Spec(task=Digits())
    with pytest.raises(SpecError, match="model 'patch-attention' cannot do the task 'addition'"):
        Spec(task=Addition(), model=PatchAttentionModel())
