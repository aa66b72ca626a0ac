"""Threads make room for other programs and take it back; what they compute stays the same."""

import os
import threading
from pathlib import Path

import pytest
import torch

from attnlab.cores import Load, cores
from attnlab.runs import create_run
from attnlab.specs import with_settings
from attnlab.training import Listener, Trainer, threads, train_run
from tiny import TINY

linux = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be kept on a core")
two_cores = pytest.mark.skipif(cores() < 2, reason="with one core there is none to leave to others")

WIDE = with_settings(
    TINY,
    {
        "task.digits": 2,
        "task.train": 512,
        "model.width": 42,
        "model.hidden": 67,
        "training.batch": 128,
        "training.threads": 2,
    },
)
"""Its products are large enough to be shared out to two threads."""


def affinities() -> set[frozenset[int]]:
    """Where the threads of this process may run."""
    tasks = [int(path.name) for path in Path("/proc/self/task").iterdir()]
    return {frozenset(os.sched_getaffinity(task)) for task in tasks}


@pytest.fixture
def _two_threads() -> None:
    torch.set_num_threads(2)


@linux
@two_cores
@pytest.mark.usefixtures("_two_threads")
def test_room_is_made_and_taken_back() -> None:
    every, count = frozenset(os.sched_getaffinity(0)), threading.active_count()
    with threads.FollowLoad() as following:
        following.make_room(0.2)  # a program that hardly does anything
        assert affinities() == {every}
        assert threading.active_count() == count
        following.make_room(len(every) - 1.1)  # a single core is left
        [here] = affinities()
        assert len(here) == 1
        assert here < every
        assert threading.active_count() == count + 1
        following.make_room(float(len(every)))  # none is left: whoever shares all of them gets its part
        assert affinities() == {every}
        assert threading.active_count() == count + 1
        following.make_room(len(every) - 1.0)
    assert affinities() == {every}
    assert threading.active_count() == count


@linux
def test_one_thread_needs_no_room() -> None:
    torch.set_num_threads(1)
    before, count = affinities(), threading.active_count()
    with threads.FollowLoad() as following:
        following.make_room(1.0)
        assert affinities() == before
        assert threading.active_count() == count


@linux
@two_cores
@pytest.mark.usefixtures("_two_threads")
def test_it_is_left_as_it_was_when_training_fails() -> None:
    before, following = affinities(), threads.FollowLoad()

    def fail() -> None:
        with following:
            following.make_room(cores() - 1.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert affinities() == before


@pytest.mark.parametrize(("prepared", "first"), [(0.05, []), (0.3, [0.8])])
def test_looks_now_and_then(monkeypatch: pytest.MonkeyPatch, prepared: float, first: list[float]) -> None:
    taken, age = iter([*first, 0.9, 0.1]), iter([prepared, 0.1, 0.6, 0.2, 0.7])
    monkeypatch.setattr(threads, "taken_since", lambda before: next(taken))
    monkeypatch.setattr(Load, "age", property(lambda self: next(age)))
    monkeypatch.setattr(threads, "read_load", lambda cores: Load(cores, 0.0, 0.0, 0.0))
    following, trainer = threads.FollowLoad(), Trainer(TINY)
    seen: list[float] = []
    monkeypatch.setattr(following, "make_room", seen.append)
    with following:
        following.started(trainer)
        for _ in range(4):
            following.stepped(trainer)
    assert seen == [*first, 0.9, 0.1, 0.0]  # and at the end nothing is left of it


def test_where_nothing_is_known_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "read_load", lambda cores: None)
    following, trainer = threads.FollowLoad(), Trainer(TINY)
    seen: list[float] = []
    monkeypatch.setattr(following, "make_room", seen.append)
    with following:
        following.started(trainer)
        following.stepped(trainer)
    assert seen == [0.0]  # at the end


class Crowded(Listener):
    """Pretends that others come and go."""

    def __init__(self, following: threads.FollowLoad) -> None:
        self._following = following

    def stepped(self, trainer: Trainer) -> None:
        self._following.make_room(1.0 if trainer.step % 3 else 0.0)


@linux
@two_cores
def test_bytes_do_not_depend_on_the_load(tmp_path: Path) -> None:
    quiet, busy = (create_run(tmp_path / name, WIDE) for name in ("quiet", "busy"))
    train_run(quiet)
    torch.set_num_threads(2)
    with threads.FollowLoad() as following:
        train_run(busy, listeners=[Crowded(following)])
    for name in ("best.safetensors", "last.safetensors"):
        assert busy.file(name).read_bytes() == quiet.file(name).read_bytes()
