"""Doing a job: train its run, make its analyses, and tell whoever gave it."""

import shutil
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, final

from filelock import FileLock, Timeout

from attnlab.analysis.keeping import analyse_run, find_analysis
from attnlab.errors import LabError, RunError, StorageError
from attnlab.runs import Run, create_run
from attnlab.spec import Spec
from attnlab.storage import refusing
from attnlab.studies.jobs import ERROR, Event, EventKind, Job, Link, keep_failure, pool_run, run_name
from attnlab.training import EpochRecord, Listener, StepRecord, Trainer, train_run
from attnlab.training.trackers import build_tracker

SECONDS_BETWEEN_REPORTS = 0.3


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
    for name in job.analyses:
        find_analysis(run, name)  # refused before there is a training for nothing
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
