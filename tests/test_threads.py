import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnlab.spec import AdditionTask, Seq2SeqModel, Spec, Training, with_settings
from attnlab.training import threads

SPEC = Spec(
    task=AdditionTask(digits=1, train=30, valid=5, test=5),
    model=Seq2SeqModel(width=8, heads=2, hidden=8, encoder_layers=1, decoder_layers=1),
    training=Training(batch=8),
)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))


def test_the_spec_decides_if_it_says_so() -> None:
    assert threads.choose_threads(replace(SPEC, training=replace(SPEC.training, threads=3))) == 3


def test_the_choice_is_measured_once_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = threads.choose_threads(SPEC)
    assert 1 <= first <= threads._cores()
    kept = json.loads((tmp_path / "cache" / "threads.json").read_text())
    assert list(kept.values()) == [first]
    monkeypatch.setattr(threads, "_fastest", lambda spec: pytest.fail("measured twice"))
    assert threads.choose_threads(replace(SPEC, seed=7)) == first


def test_another_shape_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_fastest", lambda spec: spec.model.width)
    wide = with_settings(SPEC, {"model.width": 16})
    assert [threads.choose_threads(spec) for spec in (SPEC, wide, SPEC)] == [8, 16, 8]


def test_a_damaged_cache_is_measured_over(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "threads.json").write_text("[")
    assert threads.choose_threads(SPEC) >= 1


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert threads.choose_threads(SPEC) >= 1


def test_measuring_leaves_torch_as_it_was() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    before = torch.get_num_threads()
    threads.choose_threads(SPEC)
    assert torch.get_num_threads() == before
    assert torch.equal(torch.rand(2), expected)
