"""Running many jobs, here or on a cluster: keep workers busy, pass events on, try crashed jobs again."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol, final, runtime_checkable

from attnlab.cores import cores
from attnlab.errors import LabError
from attnlab.specs import require
from attnlab.storage import make_folder
from attnlab.studies.jobs import ENDS, Event, Job, failure, is_done, keep_failure, pool_run
from attnlab.studies.study import Study
from attnlab.training.trackers import Tracker

ATTEMPTS = 3  # so often a job may take its worker or its machine down before it counts as failed
SECONDS = 0.2  # between two looks at whether to stop
SECONDS_TO_LEAVE = 30.0


@runtime_checkable
class Executor(Protocol):
    """Somewhere to run jobs: processes on this machine, or a cluster."""

    @property
    def slots(self) -> int:
        """How many jobs can run at once."""

    def __enter__(self) -> "Executor": ...

    def __exit__(self, *error: object) -> None: ...

    def submit(self, job: Job) -> None:
        """Start ``job`` on a free slot."""

    def wait(self, seconds: float) -> list[Event]:
        """What happened, waiting up to ``seconds`` for the first of it."""

    def answer(self, job: str, *, go_on: bool) -> None:
        """Let a job that asked after an epoch go on, or end it."""

    def stop(self) -> None:
        """Ask every job to save and stop."""


def drive(
    executor: Executor,
    pool: Path,
    *,
    next_job: Callable[[], Job | None],
    handle: Callable[[Event], None],
    stopping: Callable[[], bool],
) -> None:
    """Run jobs until there is no next one, or until asked to stop; ``handle`` sees every event.

    A job whose worker died is started again, from its last saved state, until it has had its attempts.
    """
    running: dict[str, Job] = {}
    deaths: Counter[str] = Counter()
    asked = False
    while True:
        if stopping() and not asked:
            asked = True
            executor.stop()
        while not asked and len(running) < executor.slots and (job := next_job()) is not None:
            running[job.name] = job
            executor.submit(job)
        if not running:
            return
        for event in executor.wait(SECONDS):
            if event.job not in running:  # late news of a lost attempt
                continue
            job = running[event.job]
            if event.kind == "crashed":
                deaths[job.name] += 1
                if asked:
                    event = Event(job=job.name, kind="stopped")
                elif deaths[job.name] < ATTEMPTS:
                    executor.submit(job)
                    continue
                else:
                    event = _give_up(job, pool, event)
            if event.kind in ENDS:
                del running[job.name]
            handle(event)


def _give_up(job: Job, pool: Path, event: Event) -> Event:
    """A job that crashed for good has failed; its run keeps the reason."""
    error = f"{event.data['error']}, {ATTEMPTS} times"
    run = pool_run(pool, job.spec)
    if run is not None:
        keep_failure(run, error, final=False)
    return Event(job=job.name, kind="failed", data={"error": error, "final": False})


def open_jobs(
    study: Study, pool: Path, *, retry: bool = False, tracks: tuple[Tracker, ...] = ()
) -> dict[str, Job]:
    """The jobs still to do, by the name of their run, in the order of the study.

    A run that failed in a way that would come again (a loss that became infinite) counts as done unless
    ``retry``; one that failed for want of memory or disk is tried again.
    """
    jobs = [Job(spec=spec, analyses=study.analyses, tracks=tracks) for _, _, spec in study.specs()]
    return {job.name: job for job in jobs if _is_open(job, pool, retry)}


def run_jobs(
    jobs: dict[str, Job],
    pool: Path,
    executor: Executor,
    *,
    handle: Callable[[Event], None],
    stopping: Callable[[], bool],
) -> None:
    """Run ``jobs`` until all have ended or somebody asks to stop."""
    waiting = iter(jobs.values())
    drive(executor, pool, next_job=lambda: next(waiting, None), handle=handle, stopping=stopping)


def _is_open(job: Job, pool: Path, retry: bool) -> bool:
    run = pool_run(pool, job.spec)
    if run is None:
        return True
    failed = failure(run)
    if failed is not None:
        return retry or not failed.final
    return not is_done(run, job.analyses)


def check_workers(workers: int | None) -> None:
    require(workers is None or workers >= 1, "workers", workers, "at least 1")


def check_pool(pool: Path) -> None:
    """Refuse a pool that is no folder, before any work."""
    if pool.exists() and not pool.is_dir():
        raise LabError(f"{pool} is not a folder; choose another folder for pool")
    make_folder(pool)


@final
class LocalExecutor:
    """So many worker processes on this machine, one torch thread each; each does one job at a time."""

    def __init__(self, pool: Path, workers: int) -> None:
        make_folder(pool)
        self.slots = workers
        self._pool = pool
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._workers: list[_Worker] = []

    def __enter__(self) -> "LocalExecutor":
        self._workers = [_Worker(self._pool, self._events) for _ in range(self.slots)]
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        for worker in self._workers:
            worker.leave()

    def submit(self, job: Job) -> None:
        """Give ``job`` to a free worker; there must be one. It is replaced if its process has ended."""
        place = next(place for place, worker in enumerate(self._workers) if worker.job is None)
        if not self._workers[place].is_alive():
            self._workers[place].leave()
            self._workers[place] = _Worker(self._pool, self._events)
        self._workers[place].job = job.name
        self._workers[place].tell({"do": job.to_json()})

    def wait(self, seconds: float) -> list[Event]:
        dead = [each for each in self._workers if each.job and not each.is_alive()]  # first: see is_alive
        events = []
        with suppress(Empty):
            events.append(self._events.get(timeout=0.0 if dead else seconds))
            while True:
                events.append(self._events.get_nowait())
        events = events or [worker.crash() for worker in dead]
        for event in events:
            if event.kind in ENDS:
                next(worker for worker in self._workers if worker.job == event.job).job = None
        return events

    def answer(self, job: str, *, go_on: bool) -> None:
        for worker in self._workers:
            if worker.job == job:  # it may have ended meanwhile
                worker.tell({"go_on": go_on})

    def stop(self) -> None:
        for worker in self._workers:
            worker.tell({"stop": True})


@final
class _Worker:
    """One process, and the job that it does."""

    def __init__(self, pool: Path, events: SimpleQueue[Event]) -> None:
        self.job: str | None = None
        self._events = events
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "attnlab.studies.worker", str(pool)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            )
        except OSError as error:
            self._log.close()
            raise LabError(f"a worker process cannot be started ({error.strerror})") from error
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def is_alive(self) -> bool:
        """Whether the process is there, or something that it said has not been passed on."""
        return self._listener.is_alive()

    def tell(self, message: dict[str, Any]) -> None:
        with suppress(BrokenPipeError, ValueError):  # it died, and will be found dead
            print(json.dumps(message), file=self._process.stdin, flush=True)

    def leave(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(SECONDS_TO_LEAVE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._listener.join()
        self._log.close()

    def crash(self) -> Event:
        """The end of a job whose process has ended, with its last words."""
        assert self.job is not None
        code = self._process.returncode
        ended = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        error = f"its worker process {ended}" + (f" ({lines[-1]})" if lines else "")
        return Event(job=self.job, kind="crashed", data={"error": error})

    def _listen(self) -> None:
        """Pass events on until the process ends."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with suppress(ValueError, TypeError):  # what a library printed, or a line torn by a kill
                    self._events.put(Event(**json.loads(line)))
        self._process.wait()


def open_executor(pool: Path, *, workers: int | None, cluster: str | None) -> Executor:
    check_workers(workers)
    if cluster is None:
        return LocalExecutor(pool, workers or cores())
    from attnlab.studies.cluster import RayExecutor  # here: Ray is an extra

    return RayExecutor(pool, address=cluster, workers=workers)
