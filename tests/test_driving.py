"""Driving many jobs through any executor: slots, attempts, stopping."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.runs import create_run
from attnlab.studies.jobs import ENDS, Event, EventKind, Failure, Job, failure, pool_run
from attnlab.studies.running import ATTEMPTS
from tiny_jobs import drive_all, jobs


@final
class FakeExecutor:
    """Plays what ``plays`` says: for each job its ends, one an attempt; which job comes next is chance."""

    def __init__(self, slots: int, plays: dict[str, list[EventKind]], *, seed: int = 0) -> None:
        self._slots = slots
        self._plays = {name: iter(ends) for name, ends in plays.items()}
        self._chance = Random(seed)
        self.running: list[str] = []
        self.most = 0
        self.submitted: list[str] = []
        self.stops = 0
        self.extra: list[Event] = []

    @property
    def slots(self) -> int:
        return self._slots

    def __enter__(self) -> "FakeExecutor":
        return self

    def __exit__(self, *error: object) -> None: ...

    def submit(self, job: Job) -> None:
        assert not self.stops
        assert job.name not in self.running
        self.running.append(job.name)
        self.submitted.append(job.name)
        self.most = max(self.most, len(self.running))

    def wait(self, seconds: float) -> list[Event]:
        name = self._chance.choice(self.running)
        self.running.remove(name)
        kind: EventKind = "stopped" if self.stops else next(self._plays[name])
        data = {"failed": {"error": "no way"}, "crashed": {"error": "it died"}}.get(kind, {})
        step = Event(job=name, kind="progress", data={})
        return [*self.extra, step, Event(job=name, kind=kind, data=data)]

    def answer(self, job: str, *, go_on: bool) -> None: ...

    def stop(self) -> None:
        self.stops += 1


@settings(max_examples=20)
@given(
    slots=st.integers(1, 5),
    crashes=st.lists(st.integers(0, 4), max_size=6),
    end=st.sampled_from(["finished", "failed", "pruned"]),
    seed=st.integers(0, 99),
)
def test_every_job_ends_once_and_slots_are_never_exceeded(
    slots: int, crashes: list[int], end: EventKind, seed: int
) -> None:
    todo = jobs(len(crashes))
    plays = {job.name: [*["crashed"] * n, end] for job, n in zip(todo, crashes, strict=True)}
    executor = FakeExecutor(slots, plays, seed=seed)  # type: ignore[arg-type]
    handled = drive_all(executor, todo, Path("nowhere"))
    ends = {event.job: event for event in handled if event.kind in ENDS}
    assert [event.kind in ENDS for event in handled].count(True) == len(todo)
    assert executor.most == min(slots, len(todo))
    assert list(dict.fromkeys(executor.submitted)) == [job.name for job in todo]
    for job, count in zip(todo, crashes, strict=True):
        assert executor.submitted.count(job.name) == min(count + 1, ATTEMPTS)
        assert ends[job.name].kind == ("failed" if count >= ATTEMPTS else end)


def test_nothing_to_do_is_done_at_once(tmp_path: Path) -> None:
    assert drive_all(FakeExecutor(1, {}), [], tmp_path) == []


def test_a_crash_is_not_seen_if_the_next_attempt_succeeds(tmp_path: Path) -> None:
    (job,) = jobs(1)
    handled = drive_all(FakeExecutor(1, {job.name: ["crashed", "crashed", "finished"]}), [job], tmp_path)
    assert [event.kind for event in handled] == ["progress", "progress", "progress", "finished"]
    assert list(tmp_path.iterdir()) == []


def test_three_crashes_are_a_failure_that_its_run_keeps(tmp_path: Path) -> None:
    begun, never = jobs(2)
    run = create_run(tmp_path / begun.name, begun.spec)
    executor = FakeExecutor(2, {job.name: ["crashed"] * 9 for job in (begun, never)})
    handled = drive_all(executor, [begun, never], tmp_path)
    told = {"error": "it died, 3 times", "final": False}
    assert Counter(event.kind for event in handled) == {"progress": 6, "failed": 2}
    assert [event.data for event in handled if event.kind == "failed"] == [told, told]
    assert failure(run) == Failure.from_json(told)
    assert pool_run(tmp_path, never.spec) is None


def test_stopping_gives_out_no_more_and_waits_for_what_is_under_way(tmp_path: Path) -> None:
    todo = jobs(5)
    executor = FakeExecutor(3, {job.name: ["finished"] for job in todo})
    handled = drive_all(executor, todo, tmp_path, stopping=lambda: len(executor.submitted) >= 3)
    assert executor.stops == 1
    assert Counter(event.kind for event in handled if event.kind in ENDS) == {"finished": 1, "stopped": 2}
    assert executor.submitted == [job.name for job in todo[:3]]
    assert executor.running == []


def test_a_worker_that_dies_while_stopping_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = jobs(1)
    executor = FakeExecutor(1, {})
    died = Event(job=job.name, kind="crashed", data={"error": "it died"})
    news = iter([[], [died]])
    monkeypatch.setattr(executor, "wait", lambda _: next(news))
    handled = drive_all(executor, [job], tmp_path, stopping=lambda: bool(executor.submitted))
    assert handled == [Event(job=job.name, kind="stopped", data={})]
    assert executor.submitted == [job.name]


def test_asked_to_stop_before_the_beginning_nothing_begins(tmp_path: Path) -> None:
    executor = FakeExecutor(1, {})
    assert drive_all(executor, jobs(3), tmp_path, stopping=lambda: True) == []
    assert executor.submitted == []


def test_late_news_is_no_news(tmp_path: Path) -> None:
    todo = jobs(3)
    executor = FakeExecutor(1, {job.name: ["finished"] for job in todo})
    executor.extra = [
        Event(job=name, kind=kind, data={"error": "late"})
        for name in ("somebody-else", todo[0].name)
        for kind in ("progress", "failed", "crashed", "finished")
    ]
    executor.running = []
    handled = drive_all(executor, todo[1:], tmp_path)
    assert [(event.job, event.kind) for event in handled] == [
        (job.name, kind) for job in todo[1:] for kind in ("progress", "finished")
    ]
