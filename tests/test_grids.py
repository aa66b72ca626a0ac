"""The task of reading grids: which digits are in them, in which order, and how models are measured."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.analysis.heads import heads_run
from attnlab.analysis.image_classifier import ImageClassifier, Member, image_classifier
from attnlab.analysis.image_evaluation import confusions, evaluate_reader
from attnlab.analysis.patterns import run_patterns
from attnlab.analysis.subjects import load_subject, score
from attnlab.errors import SpecError
from attnlab.models import Seq2Seq, build_model
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.problems.grids.pools import grid_sets, join_cells
from attnlab.runs import RunFolder, create_run, load_model
from attnlab.sets import Examples
from attnlab.specs import Augment, PatchSeq2SeqModel, Spec, Training
from attnlab.training import train_run
from attnlab.training.trainer import Trainer
from tiny_digits import untrained, write_squares

TASK = Grids(rows=2, columns=3, train=23, valid=11, test=13)
MODEL = PatchSeq2SeqModel(rows=2, columns=3, patch=14, width=12, heads=3, encoder_layers=1, hidden=7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_squares(tmp_path_factory.mktemp("squares")))


@pytest.fixture
def task(folder: str) -> Grids:
    return replace(TASK, directory=folder)


def cut(images: Tensor) -> Tensor:
    """Cells (N, 6, 28, 28) of images of two rows and three columns."""
    return images.view(len(images), 2, 28, 3, 28).transpose(2, 3).reshape(len(images), 6, 28, 28)


def known(folder: str, split: str) -> dict[bytes, int]:
    """The class of each digit of a split, by its pixels."""
    digits = Digits(directory=folder)
    pixels, labels = digits.pixels(split)  # type: ignore[arg-type]
    return {image.numpy().tobytes(): int(label) for image, label in zip(pixels, labels, strict=True)}


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_grids_hold_digits_of_their_split_in_reading_order(task: Grids, folder: str, split: str) -> None:
    pixels, digits = task.pixels(split, seed=5)  # type: ignore[arg-type]
    assert pixels.shape[1:] == (56, 84)
    classes = known(folder, split)
    found = [[classes[cell.numpy().tobytes()] for cell in grid] for grid in cut(pixels)]
    assert found == digits.tolist()
    assert len(set(digits.flatten().tolist())) == 10 or split == "valid"


def test_images_are_made_when_asked_for(task: Grids) -> None:
    examples = task.splits(0).test
    part = examples[torch.tensor([3, 7])]
    images, fed = part.inputs
    assert torch.equal(images, task.pixels("test")[0][[3, 7]].float() / 255)
    assert torch.equal(fed[:, 1:], part.targets[:, :-1])
    assert (fed[:, 0] == task.start).all()
    assert examples.stored[0].shape == (13, 6)


def test_only_training_grids_depend_on_the_seed(task: Grids) -> None:
    one, other = task.splits(0), task.splits(1)
    assert torch.equal(one.test.stored[0], other.test.stored[0])
    assert torch.equal(one.valid.stored[0], other.valid.stored[0])
    assert not torch.equal(one.train.stored[0], other.train.stored[0])
    assert one.resample is None
    assert one.augment is None
    fewer = replace(task, test=5).splits(0).test
    assert torch.equal(fewer.stored[0], one.test.stored[0][:5])


def test_fresh_grids_are_a_function_of_seed_and_epoch(task: Grids) -> None:
    splits, again = (replace(task, fresh=True).splits(3) for _ in range(2))
    assert splits.resample is not None
    assert again.resample is not None
    assert torch.equal(splits.resample(0).targets, splits.train.targets)
    assert torch.equal(splits.resample(2).stored[0], again.resample(2).stored[0])
    assert not torch.equal(splits.resample(2).stored[0], splits.train.stored[0])


def test_each_cell_is_altered_for_itself(task: Grids) -> None:
    splits = replace(task, augment=Augment(shift=2.0)).splits(0)
    assert splits.augment is not None
    batch = splits.train[slice(0, 5)]
    once, again, other = (splits.augment(batch, step).inputs[0] for step in (4, 4, 5))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    before, after = cut(batch.inputs[0]), cut(once)
    for row in range(-2, 3):
        assert (after[..., 2:-2, 2:-2] != before.roll(row, dims=2)[..., 2:-2, 2:-2]).any()
    dark = before[:, :, :2].mean()
    assert after[:, :, :2].mean() < 2 * dark + 0.2
    assert torch.equal(splits.augment(batch, 4).targets, batch.targets)


def test_cells_of_one_grid_move_by_different_ways(task: Grids) -> None:
    """The grid as a whole would move the middle of all of its squares alike."""
    splits = replace(task, augment=Augment(shift=4.0)).splits(0)
    assert splits.augment is not None
    batch = splits.train[slice(0, 3)]

    def middles(images: Tensor) -> Tensor:
        rows = cut(images).square().sum(dim=3)  # (N, 6, 28)
        return (rows * torch.arange(28.0)).sum(dim=2) / rows.sum(dim=2)

    moved = middles(splits.augment(batch, 4).inputs[0]) - middles(batch.inputs[0])
    assert (moved.std(dim=1) > 0.3).all()


def test_only_training_grids_are_altered(task: Grids) -> None:
    altered, plain = (replace(task, augment=each).splits(0) for each in (Augment(shift=4.0), Augment()))
    for split in ("valid", "test"):
        one, other = getattr(altered, split), getattr(plain, split)
        assert torch.equal(one.inputs[0], other.inputs[0])
    assert plain.augment is None


def test_cells_are_joined_row_by_row() -> None:
    cells = torch.arange(6.0)[None, :, None, None].expand(1, 6, 28, 28)
    image = join_cells(cells, 2)[0]
    assert image[::28, ::28].tolist() == [[0, 1, 2], [3, 4, 5]]


def spec_of(folder: str, **training: object) -> Spec:
    settings = {"epochs": 2, "batch": 5, "threads": 1, **training}
    return Spec(
        task=replace(TASK, directory=folder, fresh=True, augment=Augment(shift=1.0, elastic=1.0)),
        model=replace(MODEL, dropout=0.1),
        training=Training(**settings),  # type: ignore[arg-type]
        seed=3,
    )


@pytest.mark.parametrize("pieces", [[3], [5, 2]])
def test_stopped_anywhere_it_ends_with_the_same_bytes(
    folder: str, pieces: list[int], tmp_path: Path
) -> None:
    whole, parts = (create_run(tmp_path / name, spec_of(folder)) for name in ("whole", "parts"))
    train_run(whole)
    for steps in pieces:
        asked = iter([False] * steps + [True])
        assert train_run(parts, stopping=lambda asked=asked: next(asked)) is None  # type: ignore[misc]
    train_run(parts)
    assert parts.file("last.safetensors").read_bytes() == whole.file("last.safetensors").read_bytes()
    data = whole.environment().data
    assert data is not None
    assert data.scale == [0.0, 1.0]


def test_every_step_sees_its_own_alteration(folder: str) -> None:
    spec = spec_of(folder, epochs=1)
    trainer, seen = Trainer(spec), list[Tensor]()

    def look(batch: Examples) -> None:
        seen.append(batch.inputs[0])
        trainer.step += 1
        trainer.window.append((0.0, 0.0))

    trainer.update = look  # type: ignore[method-assign]
    trainer.train()
    splits = trainer.task.splits(spec.seed)
    assert splits.augment is not None
    second = splits.train[trainer.order[5:10]]
    assert torch.equal(seen[1], splits.augment(second, 1).inputs[0])


@pytest.fixture
def run(folder: str, tmp_path: Path) -> RunFolder:
    """A run with its first weights."""
    torch.manual_seed(0)
    return untrained(tmp_path / "grids", spec_of(folder))


def reader(task: Grids) -> Seq2Seq:
    """A model that says the truth of every grid, but for one cell of the first four."""
    examples = task.splits(0).test
    said = examples.targets.clone()
    said[:4, 2] = (said[:4, 2] + 1) % 10
    places = {image.numpy().tobytes(): place for place, image in enumerate(examples.inputs[0])}

    def answers(images: Tensor) -> Tensor:
        return said[[places[image.numpy().tobytes()] for image in images]]

    def begin(images: Tensor) -> Callable[[Tensor], Tensor]:
        rows = iter(9.0 * F.one_hot(answers(images), 11).transpose(0, 1)[:, :, None])
        return lambda token: next(rows)

    model = build_model(MODEL, vocabulary=11)
    setattr(model, "begin", begin)  # noqa: B010
    setattr(model, "forward", lambda images, fed: 9.0 * F.one_hot(answers(images), 11))  # noqa: B010
    return model


def test_what_is_counted(task: Grids) -> None:
    found = evaluate_reader(
        ImageClassifier("one", task, (Member("one", reader(task), task.scale),))
    ).to_json()
    assert found["examples"] == 13
    assert found["exact_match"] == pytest.approx(9 / 13)
    assert found["teacher_forced"]["exact_match"] == pytest.approx(9 / 13)
    assert found["digit_accuracy"] == pytest.approx(74 / 78)
    assert found["if_independent"] == pytest.approx((74 / 78) ** 6)
    assert [row["cell"] for row in found["by_cell"]] == ["0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]
    assert [row["accuracy"] for row in found["by_cell"]] == pytest.approx([1, 1, 9 / 13, 1, 1, 1])
    assert sum(row["examples"] for row in found["by_class"]) == 78
    off = sum(found["confusion"][digit][(digit + 1) % 10] for digit in range(10))
    assert (off, sum(map(sum, found["confusion"]))) == (4, 78)


def test_a_start_token_that_is_said_is_no_digit() -> None:
    found = confusions(torch.tensor([[1, 2]]), torch.tensor([[1, 10]]), 10)
    assert sum(map(sum, found)) == 1
    assert found[1][1] == 1


def test_greedy_and_teacher_forced_exact_match_are_one(run: RunFolder) -> None:
    task, model = run.spec().task, load_model(run)
    assert isinstance(task, Grids)
    assert isinstance(model, Seq2Seq)
    found = evaluate_reader(image_classifier(run)).to_json()
    assert found["exact_match"] == found["teacher_forced"]["exact_match"]
    subject = load_subject(run, split="test", count=7)
    assert subject.places == task.places()
    assert sum(int(group.sum()) for group in subject.strata.values()) == 7
    assert score(subject.model, subject.examples).right.shape == (7, 6)


def test_sets_of_keys() -> None:
    sets = grid_sets(2, 3, 2, pooled=False)
    cell = sets["decoder", "cross"]["cell"]
    assert cell.shape == (6, 24)
    assert cell[1].nonzero().flatten().tolist() == [2, 3, 8, 9]
    assert sets["encoder", "self"]["cell"].sum(dim=1).tolist() == [4] * 24
    assert torch.equal(grid_sets(2, 3, 2, pooled=True)["decoder", "cross"]["cell"], torch.eye(6).bool())


def test_where_heads_look(run: RunFolder) -> None:
    found = heads_run(run, count=5)
    assert len(found.heads) == 9
    cross = [row for row in found.heads if row.kind == "decoder cross"]
    assert cross[0].metrics["cell"].uniform == pytest.approx(1 / 6)
    assert set(cross[0].metrics["cell"].by_place or {}) == {"0,0", "0,1", "0,2", "1,0", "1,1", "1,2"}
    (looked,) = run_patterns(run, example="test:3").looked
    assert looked.example == "test:3"
    assert len(looked.answer) == 6
    by_path = {each.attention: each for each in looked.patterns}
    assert by_path["encoder.0.self"].keys[:7] == ["0,0", "0,1", "0,2", "0,3", "0,4", "0,5", "1,0"]
    assert by_path["decoder.0.cross"].queries[0] == "⊢"
    assert by_path["decoder.0.cross"].pattern.shape == (3, 6, 24)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": 0}, "task.rows is 0, but it must be at least 1"),
        ({"test": 0}, "task.test is 0, but it must be at least 1"),
        ({"rows": 9, "columns": 8}, "task.rows x task.columns is 72, but it must be at most 64 digits"),
    ],
)
def test_grids_that_cannot_be(change: dict[str, int], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        replace(TASK, **change)  # type: ignore[arg-type]
