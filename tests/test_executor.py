"""Jobs and where they run: whatever happens to a worker, a run ends with the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import StringIO
from operator import itemgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from threading import Thread
from types import TracebackType
from typing import Any, final

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.analysis import Analysis
from attnlab.cores import cores
from attnlab.errors import InputError, LabError, RunError, SpecError, StorageError
from attnlab.runs import Run, create_run
from attnlab.spec import SGD, Spec, spec_hash
from attnlab.storage import write_json
from attnlab.studies import Event, Executor, Job, LocalExecutor, local, open_executor
from attnlab.studies.driving import ATTEMPTS, drive
from attnlab.studies.jobs import ENDS, EventKind, failure, keep_failure, pool_run, run_name
from attnlab.studies.performing import perform
from attnlab.studies.worker import PipeLink
from attnlab.training import Listener, Trainer, train_run
from specs import specs
from tiny import tiny

SPEC = tiny(threads=1)
EPOCHS, STEPS = 3, 15
LONGER = tiny(threads=1, epochs=7)
BOTH: tuple[Analysis, ...] = ("evaluate-test", "verify")


@final
class FakeLink:
    """Keeps all events; stops when told to; answers from a list, yes when that is used up."""

    def __init__(
        self, *, stop: Callable[[list[Event]], bool] = lambda events: False, answers: Iterable[bool] = ()
    ) -> None:
        self.events: list[Event] = []
        self._stop = stop
        self._answers = iter(answers)

    def send(self, event: Event) -> None:
        self.events.append(event)

    def stopping(self) -> bool:
        return self._stop(self.events)

    def may_go_on(self) -> bool:
        assert self.events[-1].kind == "epoch"
        return next(self._answers, True)

    @property
    def epochs(self) -> list[int]:
        return epochs(self.events)

    @property
    def last(self) -> Event:
        assert [event.kind in ENDS for event in self.events] == [False] * (len(self.events) - 1) + [True]
        return self.events[-1]


def epochs(events: list[Event]) -> list[int]:
    return [event.data["epoch"] for event in events if event.kind == "epoch"]


def after_epochs(count: int) -> Callable[[list[Event]], bool]:
    return lambda events: len(epochs(events)) >= count


def done(job: Job, pool: Path, **link: Any) -> FakeLink:
    found = FakeLink(**link)
    perform(job, pool, found)
    return found


def run_of(pool: Path, spec: Spec = SPEC) -> Run:
    run = pool_run(pool, spec)
    assert run is not None
    return run


def weights(run: Run) -> list[bytes]:
    return [run.file(name).read_bytes() for name in ("best.safetensors", "last.safetensors")]


def metrics(run: Run) -> list[dict[str, Any]]:
    return [{key: line[key] for key in line if key != "seconds"} for line in run.metrics()]


def times(run: Run) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in run.path.rglob("*.*") if path.name != ".lock"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run of SPEC as it is without any jobs."""
    run = create_run(tmp_path_factory.mktemp("whole") / "run", SPEC)
    train_run(run)
    return run


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = create_run(tmp_path_factory.mktemp("longer") / "run", LONGER)
    train_run(run)
    return run


# A job by itself


def test_a_job_trains_analyses_and_tells_it_in_order(
    tmp_path: Path, whole: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.studies.performing.SECONDS_BETWEEN_REPORTS", 0.0)
    link = done(Job(spec=SPEC, analyses=BOTH), tmp_path)
    expected: list[tuple[str, Any]] = [("progress", ("training", 0, STEPS))]
    for step in range(1, STEPS + 1):
        expected += [("epoch", step // 5)] if step % 5 == 0 else []
        expected += [("progress", ("training", step, STEPS))]
    expected += [("progress", ("verify", 100, 100)), ("finished", None)]
    place = itemgetter("phase", "done", "total")
    told = [(e.kind, e.data.get("epoch") or place(e.data)) for e in link.events[:-1]]
    assert [*told, (link.last.kind, None)] == expected
    assert {event.job for event in link.events} == {run_name(SPEC)}
    run = run_of(tmp_path)
    lines = run.metrics()
    assert [e.data for e in link.events if e.kind == "epoch"] == [x for x in lines if x["event"] == "epoch"]
    assert link.events[1].data["note"] == f"loss {lines[0]['loss']:.4f}"
    assert weights(run) == weights(whole)
    assert metrics(run) == metrics(whole)
    found = run.analysis("verify")
    assert found is not None
    assert found["total"] == 100
    assert run.analysis("evaluate-test") is not None


def test_steps_are_told_now_and_then_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.studies.performing.SECONDS_BETWEEN_REPORTS", 1000.0)
    kinds = [event.kind for event in done(Job(spec=SPEC, analyses=BOTH), tmp_path).events]
    assert kinds == ["progress", "epoch", "epoch", "epoch", "finished"]


def test_a_stopped_job_goes_on_to_the_same_bytes_and_tells_its_epochs_again(
    tmp_path: Path, whole: Run
) -> None:
    first = done(Job(spec=SPEC), tmp_path, stop=after_epochs(1))
    run = run_of(tmp_path)
    assert (first.epochs, first.last.kind) == ([1], "stopped")
    assert run.summary() is None
    assert run.file("state.safetensors").exists()
    second = done(Job(spec=SPEC), tmp_path)
    assert (second.epochs, second.last.kind) == ([1, 2, 3], "finished")
    told = [next(e for e in link.events if e.kind == "epoch") for link in (first, second)]
    assert told[0] == told[1]
    assert second.events[0].data["done"] == 5
    assert weights(run) == weights(whole)
    assert metrics(run) == metrics(whole)


def test_a_job_stopped_before_its_first_step_leaves_nothing_to_repair(tmp_path: Path, whole: Run) -> None:
    link = done(Job(spec=SPEC), tmp_path, stop=lambda _: True)
    assert [event.kind for event in link.events] == ["stopped"]
    assert pool_run(tmp_path, SPEC) is None
    done(Job(spec=SPEC), tmp_path)
    assert weights(run_of(tmp_path)) == weights(whole)


def test_a_finished_job_is_told_but_not_done_again(tmp_path: Path) -> None:
    job = Job(spec=SPEC, analyses=("evaluate-test",))
    first = done(job, tmp_path)
    before = times(run_of(tmp_path))
    again = done(job, tmp_path)
    assert [event.kind for event in again.events] == ["epoch", "epoch", "epoch", "finished"]
    assert again.events[:-1] == [event for event in first.events if event.kind == "epoch"]
    assert times(run_of(tmp_path)) == before


def test_another_analysis_leaves_the_training_alone(tmp_path: Path) -> None:
    done(Job(spec=SPEC), tmp_path)
    before = times(run_of(tmp_path))
    done(Job(spec=SPEC, analyses=("evaluate-valid",)), tmp_path)
    after = times(run_of(tmp_path))
    assert after.items() > before.items()
    assert after.keys() - before.keys() == {"evaluate-valid.json"}


def test_a_job_that_may_not_go_on_is_pruned_and_keeps_its_state(tmp_path: Path, whole: Run) -> None:
    asking = Job(spec=SPEC, analyses=("evaluate-test",), asks=True)
    link = done(asking, tmp_path, answers=[True, False])
    run = run_of(tmp_path)
    assert (link.epochs, link.last.kind) == ([1, 2], "pruned")
    assert (run.summary(), run.analysis("evaluate-test")) == (None, None)
    kept = run.file("state.safetensors").read_bytes()
    again = done(asking, tmp_path, answers=[True, False])
    assert (again.epochs, again.last.kind) == ([1, 2], "pruned")
    assert json.loads(run.file("metrics.jsonl").read_text().splitlines()[-1])["step"] == 10
    assert len(run.file("state.safetensors").read_bytes()) == len(kept)
    allowed = done(asking, tmp_path)
    assert (allowed.epochs, allowed.last.kind) == ([1, 2, 3], "finished")
    assert weights(run) == weights(whole)


def test_a_job_that_does_not_ask_never_waits(tmp_path: Path) -> None:
    assert done(Job(spec=SPEC), tmp_path, answers=[False] * 9).last.kind == "finished"


def test_a_no_after_the_last_epoch_saves_the_analysis(tmp_path: Path) -> None:
    job = Job(spec=SPEC, analyses=("evaluate-test",), asks=True)
    for _ in range(2):  # in training, and told again by the finished run
        link = done(job, tmp_path, answers=[True, True, False])
        assert (link.epochs, link.last.kind) == ([1, 2, 3], "pruned")
        assert run_of(tmp_path).summary() is not None
        assert run_of(tmp_path).analysis("evaluate-test") is None
    assert done(job, tmp_path, answers=[False]).epochs == [1]


def test_an_analysis_can_be_stopped_and_is_made_later(tmp_path: Path) -> None:
    job = Job(spec=SPEC, analyses=("verify",))
    trained = tmp_path / job.name / "summary.json"
    assert done(job, tmp_path, stop=lambda _: trained.exists()).last.kind == "stopped"
    run = run_of(tmp_path)
    before = times(run)
    assert run.analysis("verify") is None
    assert done(job, tmp_path).last.kind == "finished"
    assert run.analysis("verify") is not None
    assert times(run).items() > before.items()


def test_trackers_listen_to_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, str, int]] = []

    class Ear(Listener):
        def __init__(self, name: str, run: Run) -> None:
            self._name, self._run = name, run

        def stopped(self, trainer: Trainer) -> None:
            heard.append((self._name, self._run.name, trainer.step))

    monkeypatch.setattr("attnlab.studies.performing.build_tracker", Ear)
    done(Job(spec=SPEC, tracks=("tensorboard", "wandb")), tmp_path)
    assert heard == [("tensorboard", run_name(SPEC), STEPS), ("wandb", run_name(SPEC), STEPS)]


def test_a_loss_that_becomes_infinite_fails_for_good(tmp_path: Path) -> None:
    broken = tiny(threads=1, lr=1e30, optimiser=SGD(), clip=0.0)
    link = done(Job(spec=broken, analyses=BOTH), tmp_path)
    error = link.last.data["error"]
    assert link.last.kind == "failed"
    assert link.last.data == {"error": error, "final": True}
    assert error.startswith("the loss became ")
    assert "try a training.lr below 1e+30" in error
    kept = failure(run_of(tmp_path, broken))
    assert kept is not None
    assert (kept["error"], kept["final"]) == (error, True)
    assert kept["traceback"][-1] == f"attnlab.errors.LabError: {error}"


@pytest.mark.parametrize(
    ("error", "text", "final"),
    [
        (LabError("no way"), "no way", True),
        (SpecError("no way"), "no way", True),
        (InputError("no way"), "no way", True),
        (RunError("it is damaged"), "it is damaged", False),
        (StorageError("the disk is full"), "the disk is full", False),
        (MemoryError("too big"), "MemoryError: too big", False),
        (RuntimeError(""), "RuntimeError: ", False),
    ],
)
def test_what_fails_is_kept_and_whether_it_would_fail_again(
    error: Exception, text: str, final: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("attnlab.studies.performing.train_run", explode)
        link = done(Job(spec=SPEC), tmp_path)
    assert [event.kind for event in link.events] == ["failed"]
    assert link.last.data == {"error": text, "final": final}
    kept = json.loads((run_of(tmp_path).path / "error.json").read_text())
    assert (kept["error"], kept["final"]) == (text, final)
    assert kept["traceback"][0] == "Traceback (most recent call last):"
    assert any(line.strip().endswith("in explode") for line in kept["traceback"])
    assert type(error).__name__ in kept["traceback"][-1]
    assert done(Job(spec=SPEC), tmp_path).last.kind == "finished"
    assert failure(run_of(tmp_path)) is None


def test_a_failure_that_cannot_be_written_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise StorageError("the disk is full")

    done(Job(spec=SPEC), tmp_path, stop=after_epochs(1))
    monkeypatch.setattr("attnlab.studies.performing.train_run", lambda *_, **__: 1 / 0)
    monkeypatch.setattr("attnlab.studies.jobs.write_json", refuse)
    link = done(Job(spec=SPEC), tmp_path)
    assert link.last.data == {"error": "ZeroDivisionError: division by zero", "final": False}
    assert failure(run_of(tmp_path)) is None


def test_a_pool_that_cannot_be_written_fails_the_job_but_not_for_good(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    link = done(Job(spec=SPEC), tmp_path / "file" / "pool")
    assert link.last.kind == "failed"
    assert link.last.data["final"] is False
    assert link.last.data["error"].startswith(f"cannot write {tmp_path}/file/pool: ")


def test_half_made_folders_are_replaced(tmp_path: Path, whole: Run) -> None:
    name = run_name(SPEC)
    for folder in (name, f".{name}.part"):
        (tmp_path / folder / "analysis").mkdir(parents=True)
        (tmp_path / folder / "metrics.jsonl").write_text("half a li")
    assert pool_run(tmp_path, SPEC) is None
    assert done(Job(spec=SPEC), tmp_path).last.kind == "finished"
    assert weights(run_of(tmp_path)) == weights(whole)
    assert metrics(run_of(tmp_path)) == metrics(whole)
    assert not (tmp_path / name / "analysis").exists()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [name]


def test_the_second_of_two_waits_and_finds_the_run_finished(tmp_path: Path) -> None:
    job, second = Job(spec=SPEC), FakeLink()
    other = Thread(target=perform, args=(job, tmp_path, second))
    seen: list[int] = []

    def while_first_works(events: list[Event]) -> bool:
        if len(epochs(events)) == 1 and not other.ident:
            other.start()
            time.sleep(0.7)  # longer than one attempt to get the lock
            seen.append(len(second.events))
        return False

    first = done(job, tmp_path, stop=while_first_works)
    before = times(run_of(tmp_path))
    other.join(60)
    assert seen == [0]
    assert first.last.kind == "finished"
    assert [event.kind for event in second.events] == ["epoch", "epoch", "epoch", "finished"]
    assert times(run_of(tmp_path)) == before


def test_whoever_waits_for_another_can_be_stopped(tmp_path: Path) -> None:
    asked = iter([False, False, True])
    with FileLock(tmp_path / f".{run_name(SPEC)}.lock"):
        link = done(Job(spec=SPEC), tmp_path, stop=lambda _: next(asked))
    assert [event.kind for event in link.events] == ["stopped"]
    assert pool_run(tmp_path, SPEC) is None
    assert done(Job(spec=SPEC), tmp_path).last.kind == "finished"


# A job on its way


@given(
    spec=specs,
    analyses=st.lists(st.sampled_from(["evaluate-valid", "evaluate-test", "verify"]), unique=True),
    asks=st.booleans(),
    tracks=st.lists(st.sampled_from(["tensorboard", "wandb"]), unique=True),
)
def test_a_job_survives_its_journey(spec: Spec, analyses: Any, asks: bool, tracks: Any) -> None:
    job = Job(spec=spec, analyses=tuple(analyses), asks=asks, tracks=tuple(tracks))
    arrived = Job.from_json(json.loads(json.dumps(job.to_json())))
    assert arrived == job
    assert arrived.name == job.name == f"{spec.task.kind}-{spec_hash(spec)}"


def test_a_run_goes_by_what_decides_its_outcome() -> None:
    assert run_name(SPEC) == run_name(replace(SPEC))
    changed = [replace(SPEC, seed=4), tiny(threads=2), tiny(threads=1, lr=0.011)]
    assert len({run_name(spec) for spec in (SPEC, *changed)}) == 4


def test_a_failure_is_read_as_it_was_kept(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", SPEC)
    assert failure(run) is None
    keep_failure(run, "too big", final=False, trace="first\nlast")
    assert failure(run) == {"error": "too big", "final": False, "traceback": ["first", "last"]}


DAMAGES = (b"", b'{"error": "to', b"[]", b"null", b"{}", b'{"final": true}', b"\xff")


@pytest.mark.parametrize("content", DAMAGES)
def test_a_damaged_failure_is_one_that_may_be_tried_again(content: bytes, tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", SPEC)
    run.file("error.json").write_bytes(content)
    assert failure(run) == {"error": "error.json cannot be read", "final": False}


# A worker's end of the pipes


def line(**message: Any) -> str:
    return json.dumps(message) + "\n"


def test_a_worker_gets_jobs_and_answers_and_tells_events() -> None:
    out, job = StringIO(), Job(spec=SPEC, analyses=BOTH, asks=True)
    link = PipeLink([line(do=job.to_json()), line(go_on=False), line(go_on=True), line(stop=True)], out)
    assert link.jobs.get(timeout=5) == job
    assert link.jobs.get(timeout=5) is None
    assert link.stopping()
    link.send(Event(job="a", kind="epoch", data={"epoch": 1}))
    link.send(Event(job="a", kind="finished", data={}))
    told = [json.loads(text) for text in out.getvalue().splitlines()]
    assert told[0] == {"job": "a", "kind": "epoch", "data": {"epoch": 1}}
    assert [event["kind"] for event in told] == ["epoch", "finished"]


def test_answers_come_in_their_order() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as lines, os.fdopen(writing, "w", buffering=1) as driver:
        link = PipeLink(lines, StringIO())
        driver.write(line(go_on=False) + line(go_on=True))
        assert [link.may_go_on(), link.may_go_on()] == [False, True]
        assert not link.stopping()
        with pytest.raises(Empty):
            link.jobs.get_nowait()
        driver.close()
        assert link.jobs.get(timeout=5) is None


def test_who_waits_for_an_answer_that_never_comes_is_let_go() -> None:
    link = PipeLink([], StringIO())
    assert link.jobs.get(timeout=5) is None
    asked = Thread(target=lambda: [link.may_go_on() for _ in range(5)], daemon=True)
    asked.start()
    asked.join(5)
    assert not asked.is_alive()


@pytest.mark.parametrize("torn", ['{"do": {"spec"', line(do={"spec": 3}), "\n"])
def test_a_torn_line_ends_the_work(torn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: SimpleQueue[Any] = SimpleQueue()
    monkeypatch.setattr("threading.excepthook", raised.put)
    link = PipeLink([torn], StringIO())
    assert raised.get(timeout=5).exc_type in (json.JSONDecodeError, SpecError)
    assert link.jobs.get(timeout=5) is None
    assert link.stopping()
    assert link.may_go_on()


def test_nobody_listening_means_stop() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    broken = os.fdopen(writing, "w")
    link = PipeLink(Iterated(), broken)
    assert not link.stopping()
    link.send(Event(job="a", kind="finished", data={}))
    assert link.stopping()
    with pytest.raises(BrokenPipeError):
        broken.close()
    closed = PipeLink(Iterated(), broken)
    closed.send(Event(job="a", kind="finished", data={}))
    assert closed.stopping()


class Iterated:
    """Lines that never come."""

    def __iter__(self) -> Iterator[str]:
        time.sleep(3600)
        yield ""


# Driving many jobs


def jobs(count: int) -> list[Job]:
    return [Job(spec=replace(SPEC, seed=seed)) for seed in range(count)]


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

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


def drive_all(
    executor: Executor, todo: list[Job], pool: Path, stopping: Callable[[], bool] = lambda: False
) -> list[Event]:
    waiting, handled = iter(todo), list[Event]()
    next_job = partial(next, waiting, None)
    drive(executor, pool, next_job=next_job, handle=handled.append, stopping=stopping)
    return handled


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
    assert failure(run) == {**told, "traceback": []}
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


# Worker processes


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def pid_of(executor: LocalExecutor) -> int:
    process = executor._workers[0]._process
    assert process is not None
    return process.pid


def test_a_killed_worker_is_replaced_and_nothing_shows(tmp_path: Path, longer: Run, whole: Run) -> None:
    """One worker process after the other: killed in the middle of a run that had been stopped before;
    the next one finishes it, prunes a second and is stopped in a third.
    """
    done(Job(spec=LONGER), tmp_path, stop=after_epochs(2))
    killed = Job(spec=LONGER, analyses=("evaluate-test",), asks=True)
    pruned = Job(spec=SPEC, asks=True)
    stopped = Job(spec=replace(LONGER, seed=5), asks=True)
    todo, handled, pids = iter([killed, pruned, stopped]), list[Event](), list[int]()

    def handle(event: Event) -> None:
        handled.append(event)
        if event.kind != "epoch":
            return
        if pid_of(executor) not in pids:
            pids.append(pid_of(executor))
        if event.job == killed.name and event.data["epoch"] == 4 and len(pids) == 1:
            os.kill(pids[0], signal.SIGKILL)
        elif event.job != stopped.name:
            executor.answer(event.job, go_on=event.job != pruned.name)

    def stopping() -> bool:
        return bool(handled) and (handled[-1].job, handled[-1].kind) == (stopped.name, "epoch")

    with LocalExecutor(tmp_path, 1) as executor:
        drive(executor, tmp_path, next_job=lambda: next(todo, None), handle=handle, stopping=stopping)
    ends = {event.job: event.kind for event in handled if event.kind in ENDS}
    assert ends == {killed.name: "finished", pruned.name: "pruned", stopped.name: "stopped"}
    told = [event.data["epoch"] for event in handled if (event.job, event.kind) == (killed.name, "epoch")]
    assert told == [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7]
    assert len(pids) == 2
    assert not any(is_there(pid) for pid in pids)
    run = run_of(tmp_path, LONGER)
    assert weights(run) == weights(longer)
    assert metrics(run) == metrics(longer)
    assert run.analysis("evaluate-test") is not None
    for job, count in ((pruned, 1), (stopped, 1)):
        run = run_of(tmp_path, job.spec)
        assert [x["epoch"] for x in run.metrics() if x["event"] == "epoch"] == list(range(1, count + 1))
        assert run.file("state.safetensors").exists()
    done(Job(spec=SPEC), tmp_path)
    assert weights(run_of(tmp_path)) == weights(whole)


def test_what_a_worker_said_before_it_died_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished = Event(job="a", kind="finished", data={})
    executor = LocalExecutor(tmp_path, 1)
    (worker,) = executor._workers
    worker.job = "a"

    def die() -> bool:
        """It says its last word at the last moment."""
        if worker.job is None:
            return False
        executor._events.put(finished)
        return True

    monkeypatch.setattr(worker, "has_died", die)
    assert executor.wait(0.01) == [finished]
    assert executor.wait(0.01) == []


@contextmanager
def customized(folder: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every Python process started meanwhile runs ``program`` first."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(program)
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        yield


NOISE = """
import os, threading, time
def shout():
    while True:
        os.write(1, b'\\xff not for you\\n{"a": 1}\\n7\\n')
        time.sleep(0.002)
threading.Thread(target=shout, daemon=True).start()
print("hello")
"""


def test_a_worker_that_prints_does_not_disturb(
    tmp_path: Path, whole: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = tmp_path / "pool"
    with customized(tmp_path / "noise", NOISE, monkeypatch), LocalExecutor(pool, 1) as executor:
        handled = drive_all(executor, [Job(spec=SPEC)], pool)
    assert epochs(handled) == [1, 2, 3]
    assert handled[-1] == Event(job=run_name(SPEC), kind="finished", data={})
    assert weights(run_of(pool)) == weights(whole)


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("import os; os._exit(7)", "its worker process ended with code 7"),
        ("import os; os.kill(os.getpid(), 15)", "its worker process was killed by signal 15"),
        (
            "import os\nos.write(2, b'first\\nno such\\xff library\\n')\nos._exit(1)",
            "its worker process ended with code 1 (no such\N{REPLACEMENT CHARACTER} library)",
        ),
    ],
)
def test_workers_that_cannot_live_fail_their_jobs(
    program: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = tmp_path / "pool"
    with customized(tmp_path / "bad", program, monkeypatch), LocalExecutor(pool, 2) as executor:
        assert executor.slots == 2
        handled = drive_all(executor, jobs(3), pool)
    told = {"error": f"{error}, 3 times", "final": False}
    assert sorted(handled, key=lambda event: event.job) == [
        Event(job=name, kind="failed", data=told) for name in sorted(job.name for job in jobs(3))
    ]


def test_a_worker_that_does_not_leave_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SECONDS_TO_LEAVE", 0.1)
    with customized(tmp_path / "slow", "import time; time.sleep(3600)", monkeypatch):
        with LocalExecutor(tmp_path / "pool", 1) as executor:
            pid = pid_of(executor)
            assert is_there(pid)
        assert not is_there(pid)


def test_a_worker_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    executor = LocalExecutor(tmp_path / "pool", 1)
    text = r"^a worker process cannot be started \(No such file or directory\)$"
    with pytest.raises(LabError, match=text):
        executor.__enter__()


def test_a_worker_whose_driver_is_gone_saves_and_leaves(tmp_path: Path, longer: Run) -> None:
    """It waits for an answer, which nobody will ever give."""
    words = [sys.executable, "-m", "attnlab.studies.worker", str(tmp_path)]
    worker = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(line(do=Job(spec=LONGER, asks=True).to_json()))
        worker.stdin.flush()
        while json.loads(worker.stdout.readline())["kind"] != "epoch":
            pass
        worker.stdout.close()
        worker.stdin.close()
        assert worker.wait(60) == 0
    finally:
        worker.kill()
    run = run_of(tmp_path, LONGER)
    assert run.summary() is None
    assert run.metrics()[-1]["epoch"] == 1
    assert run.file("state.safetensors").exists()
    assert done(Job(spec=LONGER), tmp_path).last.kind == "finished"
    assert weights(run) == weights(longer)


def test_workers_as_many_as_asked_for_or_as_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 5}, raising=False)
    assert open_executor(tmp_path, workers=5, cluster=None).slots == 5
    assert cores() == open_executor(tmp_path, workers=None, cluster=None).slots == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 11)
    assert cores() == 11
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_no_workers_are_too_few(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"^--workers is 0, but it must be at least 1$"):
        open_executor(tmp_path / "pool", workers=0, cluster=None)
    assert not (tmp_path / "pool").exists()


def test_a_pool_that_cannot_be_made(tmp_path: Path) -> None:
    write_json(tmp_path / "file", 1)
    with pytest.raises(StorageError, match=r"^cannot write .*/file/pool: not a directory"):
        LocalExecutor(tmp_path / "file" / "pool", 1)
