"""A job: one run to train and analyse, wherever there is a free worker.

A pool is a folder of runs that go by the hash of their spec. Whoever needs a spec, whichever study or sweep
it is, finds the same run there, finished or begun; so studies share runs, and nothing is done twice.
"""

import json
import shutil
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Protocol, final, runtime_checkable

from filelock import FileLock, Timeout

from attnlab.analysis import Analysis, analyse_run
from attnlab.errors import LabError, RunError, StorageError
from attnlab.runs import Run, create_run
from attnlab.spec import Spec, from_json, spec_hash, to_json
from attnlab.storage import refusing, write_json
from attnlab.training import EpochRecord, Listener, StepRecord, Trainer, train_run
from attnlab.training.trackers import Tracker, build_tracker

ERROR = "error.json"
SECONDS_BETWEEN_REPORTS = 0.3

EventKind = Literal["progress", "epoch", "finished", "pruned", "stopped", "failed", "crashed"]
ENDS: tuple[EventKind, ...] = ("finished", "pruned", "stopped", "failed", "crashed")
"""Events after which a job is over."""


@final
@dataclass(frozen=True, kw_only=True)
class Job:
    """A spec to train and the analyses to make of it.

    ``asks``: each epoch waits for leave to go on. ``tracks``: the trackers that listen to the training.
    """

    spec: Spec
    analyses: tuple[Analysis, ...] = ()
    asks: bool = False
    tracks: tuple[Tracker, ...] = ()

    @cached_property
    def name(self) -> str:
        """The name of its run in the pool."""
        return run_name(self.spec)

    def to_json(self) -> dict[str, Any]:
        return {
            "spec": to_json(self.spec),
            "analyses": list(self.analyses),
            "asks": self.asks,
            "tracks": list(self.tracks),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Job":
        return cls(
            spec=from_json(Spec, data["spec"]),
            analyses=tuple(data["analyses"]),
            asks=data["asks"],
            tracks=tuple(data["tracks"]),
        )


@final
@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to the job whose run has this name."""

    job: str
    kind: EventKind
    data: dict[str, Any]


@runtime_checkable
class Link(Protocol):
    """What connects a job with whoever gave it."""

    def send(self, event: Event) -> None:
        """Tell what happened."""

    def stopping(self) -> bool:
        """Whether the job was asked to stop and save."""

    def may_go_on(self) -> bool:
        """Wait for the answer to the epoch that was just sent."""


def run_name(spec: Spec) -> str:
    """``addition-5f1c0e6a9b3d``."""
    return f"{spec.task.kind}-{spec_hash(spec)}"


def pool_run(pool: Path, spec: Spec) -> Run | None:
    """The run of ``spec`` in the pool, if there is one."""
    run = Run(pool / run_name(spec))
    return run if run.file("spec.json").exists() else None


def failure(run: Run) -> dict[str, Any] | None:
    """Why the run failed when it was last tried, or None."""
    try:
        found = json.loads(run.file(ERROR).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or "error" not in found:
        return {"error": f"{ERROR} cannot be read", "final": False}
    return found


def keep_failure(run: Run, error: str, *, final: bool, trace: str = "") -> None:
    """Write down why a run failed; ``final`` if it would fail again."""
    write_json(run.file(ERROR), {"error": error, "final": final, "traceback": trace.splitlines()})


def is_done(run: Run, analyses: tuple[Analysis, ...]) -> bool:
    """Whether training has ended and every analysis is there."""
    return run.summary() is not None and all(run.analysis(name) is not None for name in analyses)


def perform(job: Job, pool: Path, link: Link) -> None:
    """Do ``job`` in ``pool`` from wherever it stands; its last event tells how it ended."""
    try:
        with _alone(pool, job.name, link) as mine:
            kind: EventKind = _train_and_analyse(job, pool, link) if mine else "stopped"
        link.send(Event(job=job.name, kind=kind, data={}))
    except Exception as error:  # whatever it is, it must not take the other runs along
        final = isinstance(error, LabError) and not isinstance(error, (RunError, StorageError))
        text = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        run = pool_run(pool, job.spec)
        if run is not None:
            _try_to_keep(run, text, final)
        link.send(Event(job=job.name, kind="failed", data={"error": text, "final": final}))


def _try_to_keep(run: Run, text: str, final: bool) -> None:
    with suppress(StorageError):  # a full disk: the event tells it all the same
        keep_failure(run, text, final=final, trace=traceback.format_exc())


def _train_and_analyse(job: Job, pool: Path, link: Link) -> EventKind:
    run = pool_run(pool, job.spec) or _create(pool, job.spec)
    run.file(ERROR).unlink(missing_ok=True)
    reporter = _Reporter(job, run, link)
    if run.summary() is not None:
        reporter.tell_earlier_epochs()
    listeners = (reporter, *(build_tracker(name, run) for name in job.tracks))
    if reporter.stopping() or train_run(run, listeners=listeners, stopping=reporter.stopping) is None:
        return "pruned" if reporter.pruned else "stopped"
    if reporter.pruned:
        return "pruned"
    try:
        for analysis in job.analyses:
            analyse_run(run, analysis, progress=partial(reporter.analysed, analysis))
    except _StoppedError:
        return "stopped"
    return "finished"


def _create(pool: Path, spec: Spec) -> Run:
    """A new run that appears in the pool as a whole, so that a kill leaves no half of one."""
    path = pool / run_name(spec)
    unfinished = path.with_name(f".{path.name}.part")
    with refusing(path):
        for leftover in (unfinished, path):
            if leftover.exists():
                shutil.rmtree(leftover)
    create_run(unfinished, spec)
    with refusing(path):
        unfinished.rename(path)
    return Run(path)


@contextmanager
def _alone(pool: Path, name: str, link: Link) -> Iterator[bool]:
    """Wait until no other process works on this run; False if asked to stop meanwhile."""
    with refusing(pool):
        pool.mkdir(parents=True, exist_ok=True)
        lock = FileLock(pool / f".{name}.lock")
        while not link.stopping():
            try:
                lock.acquire(timeout=0.5)
            except Timeout:
                continue
            break
    try:
        yield lock.is_locked
    finally:
        lock.release()


class _StoppedError(Exception):
    """An analysis was asked to stop."""


@final
class _Reporter(Listener):
    """Tells of steps now and then, and of every epoch, including those of an earlier start."""

    def __init__(self, job: Job, run: Run, link: Link) -> None:
        self._job = job
        self._run = run
        self._link = link
        self._told = 0.0
        self._note = ""
        self.pruned = False

    def stopping(self) -> bool:
        return self.pruned or self._link.stopping()

    def tell_earlier_epochs(self) -> None:
        """Tell every epoch that the run has behind it."""
        for line in self._run.metrics():
            if line["event"] == "epoch" and not self.pruned:
                self._epoch(line)

    def started(self, trainer: Trainer) -> None:
        self._progress("training", trainer.step, trainer.total_steps)
        self.tell_earlier_epochs()

    def stepped(self, trainer: Trainer) -> None:
        self._now_and_then("training", trainer.step, trainer.total_steps)

    def logged(self, trainer: Trainer, record: StepRecord) -> None:
        self._note = f"loss {record.loss:.4f}"

    def epoch_ended(self, trainer: Trainer, record: EpochRecord, best: bool) -> None:
        self._epoch({"event": "epoch", **record.to_json(), "best": best})

    def analysed(self, analysis: str, done: int, total: int) -> None:
        """An analysis has come so far."""
        if self._link.stopping():
            raise _StoppedError
        self._note = ""
        self._now_and_then(analysis, done, total)

    def _now_and_then(self, phase: str, done: int, total: int) -> None:
        if time.monotonic() - self._told >= SECONDS_BETWEEN_REPORTS:
            self._progress(phase, done, total)

    def _progress(self, phase: str, done: int, total: int) -> None:
        self._told = time.monotonic()
        data = {"phase": phase, "done": done, "total": total, "note": self._note}
        self._link.send(Event(job=self._job.name, kind="progress", data=data))

    def _epoch(self, line: dict[str, Any]) -> None:
        self._link.send(Event(job=self._job.name, kind="epoch", data=line))
        if self._job.asks and not self._link.may_go_on():
            self.pruned = True
