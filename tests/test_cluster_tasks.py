"""What becomes of tasks on a cluster: lost, silent, waiting, stopped, pruned."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray
import ray.exceptions
from filelock import FileLock

from attnlab import registry
from attnlab.errors import LabError
from attnlab.presets import preset
from attnlab.runs import create_run
from attnlab.specs import with_settings
from attnlab.studies import cluster
from attnlab.studies.cluster import RayExecutor
from attnlab.studies.jobs import Event, Failure, Job, failure, pool_run
from attnlab.studies.running import ATTEMPTS, drive
from attnlab.studies.travelling import pack
from attnlab.training import train_run
from fake_ray import FakeRay
from tiny import tiny

REVERSE = Path(__file__).parents[1] / "examples" / "reverse.py"
JOB = Job(spec=tiny(threads=1), analyses=("evaluate-test",))
ASKING = Job(spec=tiny(threads=1), asks=True)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    found = FakeRay()
    monkeypatch.setattr(cluster, "_connect", lambda address: found)
    monkeypatch.setattr(ray, "get", found.get)
    monkeypatch.setattr(ray, "get_runtime_context", found.get_runtime_context)
    return found


def driven(
    pool: Path,
    job: Job = JOB,
    *,
    stopping: Callable[[RayExecutor], bool] = lambda executor: False,
    handle: Callable[[RayExecutor, Event], None] = lambda executor, event: None,
) -> list[Event]:
    """Every event of one job."""
    events: list[Event] = []
    jobs = iter([job])

    def see(event: Event) -> None:
        events.append(event)
        handle(executor, event)

    with RayExecutor(pool, address="anywhere:1", workers=None) as executor:
        drive(
            executor,
            pool,
            next_job=lambda: next(jobs, None),
            handle=see,
            stopping=lambda: stopping(executor),
        )
    return events


def is_free(pool: Path) -> bool:
    with FileLock(pool / f".{JOB.name}.lock", blocking=False) as lock:
        return bool(lock.is_locked)


def test_what_was_raised_on_a_node_is_the_reason(fake: FakeRay, tmp_path: Path) -> None:
    """As when attnlab is not installed there."""
    trace = "ray::_do_remotely()\n  File ...\nModuleNotFoundError: No module named 'attnlab'"
    task_error: Any = ray.exceptions.RayTaskError
    fake.losses = [task_error("f", trace, ModuleNotFoundError())] * ATTEMPTS
    (event,) = driven(tmp_path)
    error = "its task was lost (ModuleNotFoundError: No module named 'attnlab'), 3 times"
    assert event == Event(job=JOB.name, kind="failed", data={"error": error, "final": False})
    run = pool_run(tmp_path, JOB.spec)
    assert run is not None
    assert failure(run) == Failure(error=error)
    assert len(fake.sent) == ATTEMPTS
    assert is_free(tmp_path)


def test_a_lost_task_begins_anew_on_another_node(fake: FakeRay, tmp_path: Path) -> None:
    """The folder that waits for a failure does not travel: its environment is the driver's."""
    fake.losses = [ray.exceptions.WorkerCrashedError(), ray.exceptions.ObjectLostError("", None, "")]
    events = driven(tmp_path)
    assert events[-1] == Event(job=JOB.name, kind="finished", data={})
    assert [sent[3] for sent in fake.sent] == [{}, {}, {}]
    run = pool_run(tmp_path, JOB.spec)
    assert run is not None
    assert failure(run) is None
    assert run.analysis("evaluate-test") is not None


def test_a_lost_task_goes_on_from_what_the_pool_holds(fake: FakeRay, tmp_path: Path) -> None:
    run = create_run(tmp_path / JOB.name, JOB.spec)
    steps = iter(range(8))
    assert train_run(run, stopping=lambda: next(steps, None) is None) is None
    saved = pack(run.path)
    fake.losses = [ray.exceptions.WorkerCrashedError()]
    assert driven(tmp_path)[-1].kind == "finished"
    assert [sent[3] for sent in fake.sent] == [saved, saved]
    assert "state.safetensors" in saved
    assert not run.file("state.safetensors").exists()


def test_the_job_of_a_node_that_fell_silent_is_given_out_again(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a machine loses its network: its task never ends, but the cluster gives the node up."""
    monkeypatch.setattr(cluster, "SECONDS_BETWEEN_LOOKS", 0.0)
    fake.full = True

    def fall_silent(executor: RayExecutor) -> bool:
        if fake.full and fake.queued:
            executor._ask("begin", JOB.name, "gone")
            fake.full = False
        return False

    assert driven(tmp_path, stopping=fall_silent)[-1].kind == "finished"
    assert [sent[0] for sent in fake.sent] == [JOB.name] * 2
    assert not fake.queued[0].done()


def test_a_task_that_waits_for_a_core_is_called_back(fake: FakeRay, tmp_path: Path) -> None:
    fake.full = True
    events = driven(tmp_path, stopping=lambda executor: len(fake.queued) == 1)
    assert events == [Event(job=JOB.name, kind="stopped", data={})]
    assert pool_run(tmp_path, JOB.spec) is None
    assert is_free(tmp_path)


def test_a_job_stops_and_comes_back_with_its_state(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.studies.worker.SECONDS_BETWEEN_REPORTS", 0.0)
    epochs: list[int] = []
    events = driven(
        tmp_path,
        ASKING,
        handle=lambda _, event: epochs.extend([event.data["epoch"]] if event.kind == "epoch" else []),
        stopping=lambda _: bool(epochs),
    )
    assert events[-1] == Event(job=JOB.name, kind="stopped", data={})
    assert epochs == [1]
    assert "state.safetensors" in pack(tmp_path / JOB.name)


def test_a_run_that_another_process_has_is_waited_for(fake: FakeRay, tmp_path: Path) -> None:
    looks = []
    with FileLock(tmp_path / f".{JOB.name}.lock") as lock:

        def look(executor: RayExecutor) -> bool:
            looks.append(len(fake.sent))
            if len(looks) == 3:
                lock.release()
            return False

        began = time.monotonic()
        assert driven(tmp_path, stopping=look)[-1].kind == "finished"
    assert looks[:3] == [0, 0, 0]
    assert time.monotonic() - began > 0.3  # it does not ask all the time
    assert len(fake.sent) == 1


def test_waiting_for_another_process_can_be_stopped(fake: FakeRay, tmp_path: Path) -> None:
    looks = iter([False, False])
    with FileLock(tmp_path / f".{JOB.name}.lock"):
        events = driven(tmp_path, stopping=lambda _: next(looks, True))
    assert events == [Event(job=JOB.name, kind="stopped", data={})]
    assert fake.sent == []


def answer_from(*answers: bool) -> Callable[[RayExecutor, Event], None]:
    left = iter(answers)

    def handle(executor: RayExecutor, event: Event) -> None:
        if event.kind == "epoch":
            executor.answer(event.job, go_on=next(left))

    return handle


def test_epochs_wait_for_their_answers(fake: FakeRay, tmp_path: Path) -> None:
    whole = driven(tmp_path / "whole", ASKING, handle=answer_from(True, True, True))
    assert whole[-1].kind == "finished"
    assert [event.data["epoch"] for event in whole if event.kind == "epoch"] == [1, 2, 3]


def test_the_answer_no_ends_a_job(fake: FakeRay, tmp_path: Path) -> None:
    events = driven(tmp_path, ASKING, handle=answer_from(True, False))
    assert [event.data["epoch"] for event in events if event.kind == "epoch"] == [1, 2]
    assert events[-1] == Event(job=JOB.name, kind="pruned", data={})
    assert "state.safetensors" in pack(tmp_path / JOB.name)


def test_what_a_lost_attempt_has_left_in_the_mailbox_is_forgotten() -> None:
    mailbox = cluster._Mailbox()
    for name in ("late", "other"):
        assert mailbox.begin(name, "node") is False
        assert mailbox.post({"job": name}) is False
        mailbox.answer(name, True)
    mailbox.forget("late")
    assert mailbox.answered("late") is None
    assert mailbox.take() == [{"job": "other"}]
    assert mailbox.answered("other") is True
    assert mailbox.answered("other") is None
    assert mailbox.begun() == {"other": "node"}
    mailbox.stop()
    assert mailbox.begin("late", "node") is True
    assert mailbox.answered("late") is True


def test_a_cluster_that_is_lost_as_a_whole_is_told(fake: FakeRay, tmp_path: Path) -> None:
    fake.full = True

    def lose(executor: RayExecutor) -> bool:
        fake.actors[0].lost = bool(fake.queued)
        return False

    with pytest.raises(
        LabError,
        match=rf"^the Ray cluster was lost \(The actor died .*\); what had come back is in {tmp_path}, "
        r"and the same command goes on from there$",
    ):
        driven(tmp_path, stopping=lose)
    assert is_free(tmp_path)


def test_slots_are_the_cores_there_are(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "SECONDS_BETWEEN_LOOKS", 0.0)
    for cores, workers, slots in [(2.0, None, 2), (7.0, None, 7), (0.0, None, 1), (7.0, 3, 3), (2.0, 3, 2)]:
        with RayExecutor(tmp_path, address="", workers=workers) as executor:
            fake.cores = cores
            executor.wait(0.0)
            assert executor.slots == slots


def test_a_node_gets_the_file_of_a_task_with_the_job(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node has never heard of the task: it executes the file that came with the job."""
    for name in ("_tasks", "_sources"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "named"))
    (tmp_path / "mine.py").write_text(REVERSE.read_text())
    small = {"task.train": 50, "task.valid": 10, "task.test": 10, "training.epochs": 1, "model.width": 16}
    job = Job(spec=with_settings(preset(str(tmp_path / "mine.py"), "default"), small))
    data = job.to_json()
    assert data["code"] == REVERSE.read_text()
    monkeypatch.setattr(registry, "_tasks", {})
    monkeypatch.setattr(registry, "_sources", {})
    assert Job.from_json(data).name == job.name
    event = driven(tmp_path / "pool", job)[-1]
    assert (event.kind, event.data) == ("finished", {})
    assert (tmp_path / "pool" / job.name / "task.py").read_text() == REVERSE.read_text()
