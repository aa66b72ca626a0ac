"""Averages over moved images: moved as said, averaged as said, and told apart."""

import json
from pathlib import Path

import pytest
import torch

from attnlab.analysis import mistakes
from attnlab.analysis.analyses import analyse_run
from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.image_evaluation import MOVES, measure_views, moved, predict_proba_over_views
from attnlab.problems.digits.studies import OVER_VIEWS
from commands import attnlab, complaint
from tiny_digits import untrained_digits


def test_images_move_by_whole_pixels() -> None:
    image = torch.arange(1, 7, dtype=torch.uint8).view(1, 2, 3)
    assert moved(image, 0, 0).equal(image)
    assert moved(image, 1, 0).tolist() == [[[0, 0, 0], [1, 2, 3]]]
    assert moved(image, -1, 1).tolist() == [[[0, 4, 5], [0, 0, 0]]]
    assert moved(image, 0, -1).tolist() == [[[2, 3, 0], [5, 6, 0]]]
    assert len(set(MOVES)) == 9
    assert MOVES[0] == (0, 0)


def test_views_are_averaged(tmp_path: Path) -> None:
    reader = image_classifier(untrained_digits(tmp_path))
    pixels = reader.images("test").pixels[:11]
    each = torch.stack([reader.predict_proba(moved(pixels, *move)) for move in MOVES[:5]])
    assert torch.allclose(predict_proba_over_views(reader, pixels, 5), each.mean(dim=0), atol=1e-6)
    assert torch.equal(predict_proba_over_views(reader, pixels, 1), reader.predict_proba(pixels))
    assert measure_views(reader, "test", 5).examples == len(reader.images("test").pixels)


def test_studies_read_kept_views(tmp_path: Path) -> None:
    run = untrained_digits(tmp_path)
    analyse_run(run, "views")
    found = run.analysis("views")
    assert found is not None
    assert found["views"] == 9
    assert found["exact_match"] == measure_views(image_classifier(run), "test", 9).exact_match
    assert OVER_VIEWS.read(run) == found["exact_match"]


@pytest.mark.slow
def test_views_stand_beside_the_accuracy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mistakes, "SHOWN", 3)  # pictures are slow to draw
    run = untrained_digits(tmp_path)
    alone = json.loads(attnlab("evaluate", run.path, "--json", cwd=tmp_path).stdout)
    both = json.loads(attnlab("evaluate", run.path, "--views", "5", "--json", cwd=tmp_path).stdout)
    assert both.pop("views")["views"] == 5
    assert both == alone
    assert "averaged over 5 views" in attnlab("evaluate", run.path, "--views", "5", cwd=tmp_path).stdout
    assert (
        complaint("evaluate", run.path, "--views", "4", cwd=tmp_path) == "views is 4; it must be 1, 5 or 9"
    )
    assert "images" in complaint("evaluate", "zoo:adder", "--views", "5", cwd=tmp_path)


@pytest.mark.parametrize("down", [-2, 0, 2])
def test_moving_back_leaves_the_middle(down: int) -> None:
    image = torch.randint(1, 255, (3, 7, 11), dtype=torch.uint8)
    again = moved(moved(image, down, 3), -down, -3)
    assert again[:, 2:-2, :-3].equal(image[:, 2:-2, :-3])
    assert not again[:, :, -3:].any()
