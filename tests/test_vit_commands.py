"""Training and asking transformers over patches, as users do, but in this process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attnlab.analysis import mistakes
from commands import attnlab, complaint
from tiny_digits import TEST, write_squares

pytestmark = pytest.mark.slow

SMALL = ["--model.width=12", "--model.heads=3", "--model.hidden=8", "--model.patch=14"]
ONCE = ["--training.threads=1", "--training.epochs=1", "--task.directory=squares"]
DIGITS = [*SMALL, *ONCE, "--model.layers=2"]
GRIDS = [*SMALL, *ONCE, "--model.encoder-layers=1", "--task.columns=3", "--model.columns=3"]
FEW = ["--task.train=60", "--task.valid=20", "--task.test=31"]


def asked(*words: str, cwd: Path) -> Any:
    return json.loads(attnlab(*words, "--json", cwd=cwd).stdout)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a set of images, a run that reads digits and one that reads grids."""
    home = tmp_path_factory.mktemp("vit")
    write_squares(home / "squares")
    said = attnlab("train", "digits", "--preset", "vit", *DIGITS, "--out", "vit", cwd=home).stderr
    assert "images: the directory squares" in said
    attnlab("train", "grids", *GRIDS, *FEW, "--model.bridge", "cells", "--out", "grid", cwd=home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mistakes, "SHOWN", 3)  # pictures are slow to draw
        yield home


def test_evaluate(home: Path) -> None:
    assert asked("evaluate", "vit", cwd=home)["examples"] == TEST
    found = asked("evaluate", "grid", cwd=home)
    assert found["examples"] == 31
    assert len(found["by_cell"]) == 6
    assert found["exact_match"] == found["teacher_forced"]["exact_match"]
    table = attnlab("evaluate", "grid", "--split", "valid", cwd=home).stdout
    assert "20 valid grids of 2 x 3 digits" in table
    assert "by cell, in the order of reading" in table


@pytest.mark.parametrize(("name", "heads"), [("vit", 6), ("grid", 9)])
def test_heads_and_what_is_lost_without_them(name: str, heads: int, home: Path) -> None:
    found = asked("heads", name, "--examples", "20", cwd=home)
    assert len(found["heads"]) == heads
    assert ("cell" in found["metrics"]) == (name == "grid")
    words = ("--examples", "20", "--baselines", "mean", "zero", "--pairs", "--shapley", "2")
    found = asked("ablate", name, *words, cwd=home)
    assert len(found["baselines"]["mean"]) == heads
    assert len(found["pairs"]) == heads * (heads - 1) // 2


@pytest.mark.parametrize(("name", "heads"), [("vit", 6), ("grid", 9)])
def test_pruned_runs_are_runs(name: str, heads: int, home: Path) -> None:
    words = ("--keep", "2", "--examples", "20", "--finetune", "3", "--out", f"{name}-small")
    found = asked("prune", name, *words, cwd=home)
    assert (len(found["kept"]), len(found["removed"])) == (2, heads - 2)
    assert found["logit_difference"] < 1e-4
    again = asked("evaluate", f"{name}-small", cwd=home)
    assert again["exact_match"] == found["test"]["after"]["exact_match"]


@pytest.mark.parametrize("name", ["vit", "grid"])
def test_pages_patterns_and_positions(name: str, home: Path) -> None:
    attnlab("report", name, "--out", f"{name}.html", "--sections", "good", cwd=home)
    page = (home / f"{name}.html").read_text()
    assert ("reads grids of digits" in page) == (name == "grid")
    assert len(asked("patterns", name, "--example", "test:3", cwd=home)["files"]) == 3
    attnlab("patterns", name, "--head", "encoder.0.self.1", "--examples", "2", cwd=home)
    attnlab("positions", name, "--out", "figures", cwd=home)


def test_predict(home: Path) -> None:
    answers = asked("predict", "grid", "test:0", "valid:3", cwd=home)
    assert [answer["input"] for answer in answers] == ["test:0", "valid:3"]
    assert all(len(answer["truth"]) == 6 for answer in answers)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("grids", "--task.rows", "3"), "model.rows is 2, but it must be task.rows, which is 3"),
        (
            ("digits", "--preset", "vit", "--model.positions", "learned:length=9"),
            "model.positions.length is 9, but it must be at least 49",
        ),
        (
            ("digits", "--preset", "vit", "--task.augment.scale", "1"),
            "task.augment.scale is 1.0, but it must be from 0 to 0.9",
        ),
    ],
)
def test_what_does_not_go_together_is_told_in_a_sentence(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    assert said in complaint("train", *words, cwd=tmp_path)
