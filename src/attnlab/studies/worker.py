"""Doing a job, and a worker process that does one after the other: jobs come as lines of JSON on standard
input, events go to standard output.

    python -m attnlab.studies.worker POOL

Lines in: ``{"do": JOB}``, ``{"go_on": true}`` as the answer to an epoch that asks, ``{"stop": true}``. When
the other end is gone, whatever the reason, the worker saves its run and leaves.
"""

import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from io import TextIOBase
from pathlib import Path
from queue import SimpleQueue
from threading import Event as Flag
from threading import Thread
from typing import final

import torch
from filelock import FileLock, Timeout

from attnlab.analysis.analyses import analyse_run, find_analysis
from attnlab.errors import LabError, RunError, StorageError
from attnlab.runs import RunFolder, as_line
from attnlab.storage import make_folder, refuse_link, refusing
from attnlab.studies.jobs import (
    ERROR,
    Event,
    EventKind,
    Job,
    Link,
    begin_run,
    keep_failure,
    pool_run,
)
from attnlab.training import EpochRecord, Listener, StepRecord, Trainer, train_run
from attnlab.training.trackers import build_tracker

SECONDS_BETWEEN_REPORTS = 0.3


def perform(job: Job, pool: Path, link: Link) -> None:
    """Do ``job`` in ``pool`` from wherever it stands; its last event tells how it ended."""
    try:
        with _alone(pool, job.name, link) as mine:
            kind: EventKind = _train_and_analyse(job, pool, link) if mine else "stopped"
        link.send(Event(job=job.name, kind=kind))
    except Exception as error:  # whatever it is, it must not take the other runs along
        final = isinstance(error, LabError) and not isinstance(error, (RunError, StorageError))
        text = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        run = pool_run(pool, job.spec)
        with suppress(StorageError):  # a full disk: the event tells it all the same
            if run is not None:
                keep_failure(run, text, final=final, trace=traceback.format_exc())
        link.send(Event(job=job.name, kind="failed", data={"error": text, "final": final}))


def _train_and_analyse(job: Job, pool: Path, link: Link) -> EventKind:
    run = pool_run(pool, job.spec) or begin_run(pool, job.spec)
    if run.file(ERROR).exists():
        run.remove(ERROR)
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


@contextmanager
def _alone(pool: Path, name: str, link: Link) -> Iterator[bool]:
    """Wait until no other process works on this run; False if asked to stop meanwhile."""
    make_folder(pool)
    refuse_link(pool / f".{name}.lock")
    with refusing(pool):
        lock = FileLock(pool / f".{name}.lock")
        while not link.stopping() and not lock.is_locked:
            with suppress(Timeout):
                lock.acquire(timeout=0.5)
    try:
        yield lock.is_locked
    finally:
        lock.release()


class _StoppedError(Exception):
    """An analysis was asked to stop."""


@final
class _Reporter(Listener):
    """Tells of steps now and then, and of every epoch, including those of an earlier start."""

    def __init__(self, job: Job, run: RunFolder, link: Link) -> None:
        self._job = job
        self._run = run
        self._link = link
        self._told = 0.0
        self._note = ""
        self.pruned = False

    def stopping(self) -> bool:
        return self.pruned or self._link.stopping()

    def tell_earlier_epochs(self) -> None:
        for record in self._run.metrics().epochs:
            if not self.pruned:
                self._epoch(record)

    def started(self, trainer: Trainer) -> None:
        self._progress("training", trainer.step, trainer.total_steps, every=0.0)
        self.tell_earlier_epochs()

    def stepped(self, trainer: Trainer) -> None:
        self._progress("training", trainer.step, trainer.total_steps)

    def logged(self, trainer: Trainer, record: StepRecord) -> None:
        self._note = f"loss {record.loss:.4f}"

    def epoch_ended(self, trainer: Trainer, record: EpochRecord) -> None:
        self._epoch(record)

    def analysed(self, analysis: str, done: int, total: int) -> None:
        if self._link.stopping():
            raise _StoppedError
        self._note = ""
        self._progress(analysis, done, total)

    def _progress(self, phase: str, done: int, total: int, *, every: float | None = None) -> None:
        """Tell how far it is, unless that was told a moment ago."""
        every = SECONDS_BETWEEN_REPORTS if every is None else every
        if time.monotonic() - self._told >= every:
            self._told = time.monotonic()
            data = {"phase": phase, "done": done, "total": total, "note": self._note}
            self._link.send(Event(job=self._job.name, kind="progress", data=data))

    def _epoch(self, record: EpochRecord) -> None:
        self._link.send(Event(job=self._job.name, kind="epoch", data=as_line(record)))
        if self._job.asks and not self._link.may_go_on():
            self.pruned = True


@final
class PipeLink:
    """The two pipes to the process that gives the jobs."""

    def __init__(self, lines: Iterable[str], out: TextIOBase) -> None:
        self._out = out
        self._stop = Flag()
        self._answers: SimpleQueue[bool] = SimpleQueue()
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        Thread(target=self._listen, args=(lines,), daemon=True).start()

    def send(self, event: Event) -> None:
        try:
            print(json.dumps(asdict(event)), file=self._out, flush=True)
        except (BrokenPipeError, ValueError):
            self._stop.set()

    def stopping(self) -> bool:
        return self._stop.is_set()

    def may_go_on(self) -> bool:
        return self.stopping() or self._answers.get()

    def _listen(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                match json.loads(line):
                    case {"do": job}:
                        self.jobs.put(Job.from_json(job))
                    case {"go_on": answer}:
                        self._answers.put(bool(answer))
                    case _:
                        break
        finally:  # also after a line that was torn when the other end was killed
            self._stop.set()
            self._answers.put(True)  # whoever waits finds the flag next
            self.jobs.put(None)


def main() -> None:
    """Work until there is nobody to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the driver decides
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    torch.set_num_threads(1)
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not get between the events
    link = PipeLink(sys.stdin, events)
    while (job := link.jobs.get()) is not None and not link.stopping():
        perform(job, Path(sys.argv[1]), link)
    gc.freeze()  # else Python searches all of torch for garbage before it leaves, most of a second


if __name__ == "__main__":
    main()
