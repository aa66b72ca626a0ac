"""Worker processes: whatever happens to one, a run ends with the same bytes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.cores import cores
from attnlab.errors import LabError, SpecError, StorageError
from attnlab.runs import RunFolder
from attnlab.storage import write_json
from attnlab.studies import running
from attnlab.studies.jobs import ENDS, Event, Job, run_name
from attnlab.studies.running import LocalExecutor, drive, open_executor
from tiny_jobs import (
    LONGER,
    SPEC,
    after_epochs,
    done,
    drive_all,
    epochs,
    jobs,
    line,
    metrics,
    run_of,
    trained,
    weights,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return trained(tmp_path_factory.mktemp("whole"), SPEC)


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return trained(tmp_path_factory.mktemp("longer"), LONGER)


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def pid_of(executor: LocalExecutor) -> int:
    return executor._workers[0]._process.pid


def test_a_killed_worker_is_replaced_and_nothing_shows(
    tmp_path: Path, longer: RunFolder, whole: RunFolder
) -> None:
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
        assert [record.epoch for record in run.metrics().epochs] == list(range(1, count + 1))
        assert run.file("state.safetensors").exists()
    done(Job(spec=SPEC), tmp_path)
    assert weights(run_of(tmp_path)) == weights(whole)


def test_what_a_worker_said_before_it_died_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished = Event(job="a", kind="finished")
    with LocalExecutor(tmp_path, 1) as executor:
        (worker,) = executor._workers
        worker.job = "a"

        def die() -> bool:
            """It says its last word at the last moment."""
            if worker.job is not None:
                executor._events.put(finished)
            return worker.job is None

        monkeypatch.setattr(worker, "is_alive", die)
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
    tmp_path: Path, whole: RunFolder, monkeypatch: pytest.MonkeyPatch
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
    monkeypatch.setattr(running, "SECONDS_TO_LEAVE", 0.1)
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


def test_a_worker_whose_driver_is_gone_saves_and_leaves(tmp_path: Path, longer: RunFolder) -> None:
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
    assert run.metrics().epochs[-1].epoch == 1
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
    with pytest.raises(SpecError, match=r"^workers is 0, but it must be at least 1$"):
        open_executor(tmp_path / "pool", workers=0, cluster=None)
    assert not (tmp_path / "pool").exists()


def test_a_pool_that_cannot_be_made(tmp_path: Path) -> None:
    write_json(tmp_path / "file", 1)
    with pytest.raises(StorageError, match=r"^cannot write .*/file/pool: not a directory"):
        LocalExecutor(tmp_path / "file" / "pool", 1)
