import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnlab.problems.addition import Addition
from attnlab.specs import SGD, Seq2SeqModel, Spec, Training, with_settings
from attnlab.training import Trainer, threads

SPEC = Spec(
    task=Addition(digits=1, train=30, valid=5, test=5),
    model=Seq2SeqModel(width=8, heads=2, hidden=8, encoder_layers=1, decoder_layers=1),
    training=Training(batch=8),
)


@pytest.fixture(autouse=True)
def _two_free_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "cores", lambda: 2)
    monkeypatch.setattr(threads, "taken_since", lambda before: 0.0)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "threads.json"


def test_the_spec_decides_if_it_says_so() -> None:
    assert threads.choose_threads(replace(SPEC, training=replace(SPEC.training, threads=3))) == 3


def test_the_choice_is_measured_once_and_remembered(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = threads.choose_threads(SPEC)
    assert first in (1, 2)
    [(count, seconds)] = json.loads(kept.read_text()).values()
    assert count == first
    assert seconds > 0
    monkeypatch.setattr(threads, "_fastest", lambda spec: pytest.fail("measured twice"))
    assert threads.choose_threads(replace(SPEC, seed=7)) == first


def test_a_rate_that_diverges_does_not_stop_the_choice() -> None:
    wild = replace(SPEC, training=replace(SPEC.training, lr=1e30, clip=0.0, optimiser=SGD()))
    assert threads.choose_threads(wild) in (1, 2)


@pytest.mark.parametrize(
    ("seconds", "count"),
    [
        ({1: 1.0, 2: 0.5}, 2),
        ({1: 1.0, 2: 0.98}, 1),  # too small a gain
        ({1: 1.0, 2: 1.5}, 1),
        ({1: 1.0, 2: 0.5, 4: 0.49, 6: 0.6}, 2),
        ({1: 1.0, 2: 0.5, 4: 0.3}, 4),
    ],
)
def test_fewer_threads_win_unless_more_are_worth_it(seconds: dict[int, float], count: int) -> None:
    assert threads.pick(seconds) == threads.Choice(count, seconds[count])


def test_a_passing_load_does_not_decide_for_ever(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of two threads are slow while somebody else uses a core: true now, and not remembered."""
    monkeypatch.setattr(threads, "_fastest", lambda spec: threads.Choice(1, 0.02))
    monkeypatch.setattr(threads, "taken_since", lambda before: 0.7)
    assert threads.choose_threads(SPEC) == 1
    assert not kept.exists()
    monkeypatch.setattr(threads, "_fastest", lambda spec: threads.Choice(2, 0.01))
    monkeypatch.setattr(threads, "taken_since", lambda before: 0.1)
    assert threads.choose_threads(SPEC) == 2
    assert list(json.loads(kept.read_text()).values()) == [[2, 0.01]]


@pytest.mark.parametrize(
    ("found", "forgotten"),
    [
        (threads.Choice(2, 0.025), True),
        (threads.Choice(2, 0.015), False),
        (threads.Choice(1, 0.025), False),  # of another number nothing is known
        (threads.Choice(2, float("inf")), False),  # no step was taken
    ],
)
def test_a_run_far_slower_than_remembered_makes_the_next_one_measure(
    found: threads.Choice, forgotten: bool, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_fastest", lambda spec: threads.Choice(2, 0.01))
    wide = with_settings(SPEC, {"model.width": 16})
    for spec in (SPEC, wide):
        threads.choose_threads(spec)
    threads.forget_if_slow(SPEC, found)
    assert len(json.loads(kept.read_text())) == (1 if forgotten else 2)
    monkeypatch.setattr(threads, "_fastest", lambda spec: threads.Choice(1, 0.03))
    assert threads.choose_threads(SPEC) == (1 if forgotten else 2)
    assert threads.choose_threads(wide) == 2


@pytest.mark.parametrize(("taken", "chosen", "forgets"), [(0.0, 0, True), (0.9, 0, False), (0.0, 2, False)])
def test_pace_is_judged_on_a_quiet_machine(
    taken: float, chosen: int, forgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fastest of the steps counts; a number that the spec gives was never chosen."""
    judged = []
    spec = replace(SPEC, training=replace(SPEC.training, threads=chosen))
    monkeypatch.setattr(threads, "taken_since", lambda before: taken)
    monkeypatch.setattr(threads, "forget_if_slow", lambda spec, found: judged.append(found))
    clock = iter([10.0, 13.0, 15.0, 19.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    pace, trainer = threads.Pace(spec, 2), Trainer(spec)
    pace.started(trainer)
    for _ in range(3):
        pace.stepped(trainer)
    pace.stopped(trainer)
    assert judged == ([threads.Choice(2, 2.0)] if forgets else [])


@pytest.mark.parametrize(("allowed", "most"), [("1", 1), ("2", 2), ("64", 2), ("", 2), ("many", 2)])
def test_what_the_user_allows_is_the_most(allowed: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", allowed)
    assert threads.most_threads() == most
    tried: list[int] = []

    def pick(seconds: dict[int, float]) -> threads.Choice:
        tried.extend(seconds)
        return threads.Choice(1, 1.0)

    monkeypatch.setattr(threads, "pick", pick)
    assert threads.choose_threads(SPEC) == 1
    assert tried == ([] if most == 1 else [1, 2])


def test_another_shape_is_measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_fastest", lambda spec: threads.Choice(spec.model.width, 1.0))
    wide = with_settings(SPEC, {"model.width": 16})
    assert [threads.choose_threads(spec) for spec in (SPEC, wide, SPEC)] == [8, 16, 8]


@pytest.mark.parametrize("content", ["[", "[1]", '{"key": 2}', '{"key": ["two", 0.1]}', '{"key": [2]}'])
def test_a_damaged_cache_is_measured_over(content: str, kept: Path) -> None:
    kept.parent.mkdir()
    kept.write_text(content)
    assert threads.choose_threads(SPEC) >= 1
    assert list(json.loads(kept.read_text())) != ["key"]


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
