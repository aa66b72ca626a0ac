"""One job: it trains, analyses and tells; stopped, pruned or failed, it leaves a run that can go on."""

import json
import time
from operator import itemgetter
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from filelock import FileLock

from attnlab.errors import InputError, LabError, RunError, SpecError, StorageError
from attnlab.runs import RunFolder, as_line
from attnlab.specs import SGD
from attnlab.studies.jobs import Event, Job, failure, pool_run, run_name
from attnlab.studies.worker import perform
from attnlab.training import Listener, Trainer
from tiny import tiny
from tiny_jobs import (
    BOTH,
    SPEC,
    STEPS,
    FakeLink,
    after_epochs,
    done,
    epochs,
    metrics,
    run_of,
    times,
    trained,
    weights,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return trained(tmp_path_factory.mktemp("whole"), SPEC)


def test_a_job_trains_analyses_and_tells_it_in_order(
    tmp_path: Path, whole: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.studies.worker.SECONDS_BETWEEN_REPORTS", 0.0)
    link = done(Job(spec=SPEC, analyses=BOTH), tmp_path)
    expected: list[tuple[str, Any]] = [("progress", ("training", 0, STEPS))]
    for step in range(1, STEPS + 1):
        expected += [("epoch", step // 5)] if step % 5 == 0 else []
        expected += [("progress", ("training", step, STEPS))]
    expected += [("progress", ("evaluate-test", 5, 5)), ("progress", ("verify", 100, 100))]
    expected += [("finished", None)]
    place = itemgetter("phase", "done", "total")
    told = [(e.kind, e.data.get("epoch") or place(e.data)) for e in link.events[:-1]]
    assert [*told, (link.last.kind, None)] == expected
    assert {event.job for event in link.events} == {run_name(SPEC)}
    run = run_of(tmp_path)
    lines = list(map(as_line, run.metrics().lines))
    assert [e.data for e in link.events if e.kind == "epoch"] == [x for x in lines if x["event"] == "epoch"]
    assert link.events[1].data["note"] == f"loss {lines[0]['loss']:.4f}"
    assert weights(run) == weights(whole)
    assert metrics(run) == metrics(whole)
    found = run.analysis("verify")
    assert found is not None
    assert found["total"] == 100
    assert run.analysis("evaluate-test") is not None


def test_steps_are_told_now_and_then_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.studies.worker.SECONDS_BETWEEN_REPORTS", 1000.0)
    kinds = [event.kind for event in done(Job(spec=SPEC, analyses=BOTH), tmp_path).events]
    assert kinds == ["progress", "epoch", "epoch", "epoch", "finished"]


def test_a_stopped_job_goes_on_to_the_same_bytes_and_tells_its_epochs_again(
    tmp_path: Path, whole: RunFolder
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


def test_a_job_stopped_before_its_first_step_leaves_nothing_to_repair(
    tmp_path: Path, whole: RunFolder
) -> None:
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


def test_a_job_that_may_not_go_on_is_pruned_and_keeps_its_state(tmp_path: Path, whole: RunFolder) -> None:
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
        def __init__(self, name: str, run: RunFolder) -> None:
            self._name, self._run = name, run

        def stopped(self, trainer: Trainer) -> None:
            heard.append((self._name, self._run.name, trainer.step))

    monkeypatch.setattr("attnlab.studies.worker.build_tracker", Ear)
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
    assert (kept.error, kept.final) == (error, True)
    assert kept.traceback[-1] == f"attnlab.training.trainer.DivergedError: {error}"


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
        patch.setattr("attnlab.studies.worker.train_run", explode)
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
    monkeypatch.setattr("attnlab.studies.worker.train_run", lambda *_, **__: 1 / 0)
    monkeypatch.setattr("attnlab.studies.jobs.as_json", refuse)
    link = done(Job(spec=SPEC), tmp_path)
    assert link.last.data == {"error": "ZeroDivisionError: division by zero", "final": False}
    assert failure(run_of(tmp_path)) is None


def test_a_pool_that_cannot_be_written_fails_the_job_but_not_for_good(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    link = done(Job(spec=SPEC), tmp_path / "file" / "pool")
    assert link.last.kind == "failed"
    assert link.last.data["final"] is False
    assert link.last.data["error"].startswith(f"cannot write {tmp_path}/file/pool: ")


def test_half_made_folders_are_put_aside(tmp_path: Path, whole: RunFolder) -> None:
    name = run_name(SPEC)
    (tmp_path / name / "analysis").mkdir(parents=True)
    (tmp_path / name / "metrics.jsonl").write_text("half a li")
    assert pool_run(tmp_path, SPEC) is None
    assert done(Job(spec=SPEC), tmp_path).last.kind == "finished"
    assert weights(run_of(tmp_path)) == weights(whole)
    assert metrics(run_of(tmp_path)) == metrics(whole)
    assert not (tmp_path / name / "analysis").exists()
    (aside,) = tmp_path.glob(f".{name}.*.left")
    assert (aside / "metrics.jsonl").read_text() == "half a li"


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


def test_an_analysis_that_there_is_not_is_refused_before_training(tmp_path: Path) -> None:
    link = done(Job(spec=SPEC, analyses=("evaluate-tset",)), tmp_path)
    assert link.events == [
        Event(
            job=run_name(SPEC),
            kind="failed",
            data={
                "error": "unknown analysis 'evaluate-tset'; did you mean 'evaluate-test'?",
                "final": True,
            },
        )
    ]
    assert run_of(tmp_path).summary() is None
