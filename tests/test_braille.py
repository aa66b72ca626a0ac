"""Digits as Braille: every dot where its pixel is, boxes with their marks, rows fitted to a width."""

import io
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.samples import Sample, draw_samples
from attnlab.cli import main
from attnlab.cli.output import print_lines
from attnlab.errors import InputError
from attnlab.figures.braille import LEGEND, braille, card, side_by_side
from attnlab.problems.grids import Grids
from attnlab.training.trainer import Trainer
from commands import attnlab, complaint
from tiny_digits import TEST, squares_spec, untrained_digits, write_squares

# Official numbers of the dots: 1 to 3 and 7 on the left, 4 to 6 and 8 on the right.
NUMBERS = {(0, 0): 1, (1, 0): 2, (2, 0): 3, (0, 1): 4, (1, 1): 5, (2, 1): 6, (3, 0): 7, (3, 1): 8}


@given(st.integers(1, 13), st.integers(1, 11), st.integers(0, 2**31))
def test_every_dot_is_where_its_pixel_is(rows: int, columns: int, seed: int) -> None:
    pixels = torch.randint(
        0, 256, (rows, columns), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8
    )
    lines = braille(pixels, ink=100)
    assert len(lines) == -(-rows // 4)
    assert {len(line) for line in lines} == {-(-columns // 2)}
    for row in range(4 * len(lines)):
        for column in range(2 * len(lines[0])):
            bit = 1 << (NUMBERS[row % 4, column % 2] - 1)
            dot = bool(ord(lines[row // 4][column // 2]) - 0x2800 & bit)
            assert dot == (row < rows and column < columns and bool(pixels[row, column] >= 100))


def _sample(answer: list[int], truth: list[int] | None, rows: int = 1, columns: int = 1) -> Sample:
    pixels = torch.zeros(28 * rows, 28 * columns, dtype=torch.uint8)
    said = torch.full((len(answer), 10), 0.05)
    said[torch.arange(len(answer)), torch.tensor(answer)] = 0.55
    return Sample(Grids(rows=rows, columns=columns), "test:7", pixels, answer, said, truth)


def test_a_box_tells_what_is_shown_and_what_is_said() -> None:
    right, wrong, asked = (card(_sample([3], truth), 80) for truth in ([3], [8], None))
    assert [str(right[0]), str(right[8])] == ["┌3─────────────┐", "└───────────✓ 3┘"]
    assert [str(wrong[0]), str(wrong[8])] == ["┌8─────────────┐", "└───────────✗ 3┘"]
    assert [str(asked[0]), str(asked[8])] == ["┌──────────────┐", "└─────────────3┘"]
    assert [right[0].style, wrong[0].style, asked[0].style] == ["", "", ""]  # colours are on the parts
    assert [str(lines[0].spans[0].style) for lines in (right, wrong)] == ["green", "red"]
    assert str(right[9]) == "test:7 55.00%"
    assert {len(str(line)) for line in right[:9]} == {16}


def test_a_grid_is_boxes_in_their_places() -> None:
    lines = [str(line) for line in card(_sample([1, 2, 3, 4, 5, 6], [1, 2, 9, 4, 5, 6], 2, 3), 48)]
    assert len(lines) == 2 * 9 + 1
    assert [lines[0][at] for at in (1, 17, 33)] == ["1", "2", "9"]
    assert [lines[8][at] for at in (12, 28, 44)] == ["✓", "✓", "✗"]
    assert [lines[17][at] for at in (14, 30, 46)] == ["4", "5", "6"]
    assert lines[18] == f"test:7 {55**6 / 1e10:.2f}%"


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (95, ["12345", "6", "78901", "2"]),
        (96, ["123456", "789012"]),
        (66, ["1234", "56", "7890", "12"]),
        (65, ["123", "456", "789", "012"]),
        (7, list("123456789012")),
    ],
)
def test_a_row_that_is_too_wide_goes_on_below(width: int, lines: list[str]) -> None:
    digits = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
    drawn = [str(line) for line in card(_sample(digits, digits, 2, 6), width, caption=False)]
    assert ["".join(filter(str.isdigit, line)) for line in drawn[::9]] == lines
    assert max(map(len, drawn)) <= max(width, 18)
    begins = [sum(map(len, lines[:place])) % 6 == 0 for place in range(len(lines))]
    assert [line[:2] == "  " for line in drawn[::9]] == [not begin for begin in begins]


@given(st.integers(1, 7), st.integers(1, 99))
def test_no_line_is_wider_than_asked_and_no_card_is_lost(count: int, width: int) -> None:
    lines = [str(line) for line in side_by_side([card(_sample([3], [3]), width)] * count, width)]
    assert max(map(len, lines)) <= max(16, width)
    assert sum(line.count("┌") for line in lines) == count
    across = max(1, (width + 2) // 18)
    assert len(lines) == 11 * -(-count // across) - 1


def test_samples_are_those_of_the_seed_and_mistakes_are_mistakes(tmp_path: Path) -> None:
    reader = image_classifier(untrained_digits(tmp_path))
    images = reader.images("test")
    missed = (reader.predict_proba(images.pixels).argmax(dim=-1) != images.truth).any(dim=1)
    first, again, other = (draw_samples(reader, count=7, seed=seed).samples for seed in (1, 1, 2))
    assert [s.name for s in first] == [s.name for s in again] != [s.name for s in other]
    drawn = draw_samples(reader, count=TEST, wrong=True)
    assert (drawn.images, drawn.wrong) == (TEST, int(missed.sum()))
    assert sorted(int(s.name[5:]) for s in drawn.samples) == missed.nonzero()[:, 0].tolist()
    assert {s.right for s in drawn.samples} == {False}
    for sample in first:
        place = int(sample.name.removeprefix("test:"))
        assert torch.equal(sample.pixels, images.pixels[place])
        assert sample.truth == images.truth[place].tolist()
        assert sample.right is not missed[place].item()
    with pytest.raises(InputError, match="samples is 0; it must be at least 1"):
        draw_samples(reader, count=0)


def test_readers_say_what_the_model_says(tmp_path: Path) -> None:
    """Also with a scale that comes from the images, and where the run has kept it."""
    spec = squares_spec(write_squares(tmp_path / "squares"))
    trainer = Trainer(spec)
    run = untrained_digits(tmp_path)
    reader = image_classifier(run)
    (member,) = reader.members
    with torch.inference_mode():
        logits = member.model(trainer.data.test.inputs[0])
    said = reader.predict_proba(reader.images("test").pixels)
    assert torch.equal(said[:, 0], logits.softmax(dim=-1))


def test_show_in_a_pipe(tmp_path: Path) -> None:
    run = untrained_digits(tmp_path)
    out = attnlab("show", run.path, "--samples", "5", cwd=tmp_path).stdout
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("┌") == 5
    assert "\x1b" not in out
    assert "top left: expected" in out
    told = json.loads(attnlab("show", run.path, "--wrong", "--samples", "3", "--json", cwd=tmp_path).stdout)
    assert [sample["correct"] for sample in told["samples"]] == [False] * 3
    assert [len(sample["picture"]) for sample in told["samples"]] == [7] * 3
    assert "this needs a run of a task with images" in complaint("show", "zoo:adder", cwd=tmp_path)


class Left(io.StringIO):
    """A pipe whose reader has left."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_who_leaves_early_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = untrained_digits(tmp_path)
    monkeypatch.setattr("sys.stdout", Left())
    with pytest.raises(BrokenPipeError):
        print_lines([Text("one")])
    assert main.run(["show", str(run.path), "--samples", "3"]) == 0


def test_training_shows_images_and_learns_the_same(tmp_path: Path) -> None:
    write_squares(tmp_path / "squares")
    words = (
        "train",
        "digits",
        "--preset",
        "small",
        "--task.directory",
        "squares",
        "--training.epochs",
        "2",
    )
    for name, show in (("plain", ()), ("shown", ("--show", "2"))):
        done = attnlab(*words, "--training.threads", "1", "--out", name, *show, cwd=tmp_path)
        assert done.stderr.count("┌") == (4 if show else 0)
        assert done.stderr.count("valid:1 ") == (2 if show else 0)
        assert done.stderr.count(LEGEND[0]) == (1 if show else 0)
        assert not show or done.stderr.index(LEGEND[1]) < done.stderr.index("┌")
    plain, shown = ((tmp_path / name / "last.safetensors").read_bytes() for name in ("plain", "shown"))
    assert plain == shown
    assert "needs a task with images" in complaint("train", "addition", "--show", "2", cwd=tmp_path)
    assert "show is -1" in complaint("train", "digits", "--show", "-1", cwd=tmp_path)
    assert not (tmp_path / "runs").exists()
