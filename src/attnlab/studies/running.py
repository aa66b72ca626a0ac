"""Running many jobs, here or on a cluster: keep workers busy, pass events on, try crashed jobs again."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from attnlab.cores import cores
from attnlab.errors import LabError, SpecError
from attnlab.runs import Run
from attnlab.storage import refusing
from attnlab.studies.jobs import ENDS, Event, Job, failure, is_done, keep_failure, pool_run
from attnlab.studies.local import LocalExecutor
from attnlab.studies.study import Study
from attnlab.training.trackers import Tracker

ATTEMPTS = 3  # so often a job may take its worker or its machine down before it counts as failed
SECONDS = 0.2  # between two looks at whether to stop


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
                    event = Event(job=job.name, kind="stopped", data={})
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
    run: Run | None = pool_run(pool, job.spec)
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


def check_pool(pool: Path) -> None:
    """Refuse a pool that is no folder, before any work."""
    if pool.exists() and not pool.is_dir():
        raise LabError(f"{pool} is no folder; choose another with --pool")
    with refusing(pool):
        pool.mkdir(parents=True, exist_ok=True)


def open_executor(pool: Path, *, workers: int | None, cluster: str | None) -> Executor:
    if workers is not None and workers < 1:
        raise SpecError(f"--workers is {workers}, but it must be at least 1")
    if cluster is None:
        return LocalExecutor(pool, workers or cores())
    from attnlab.studies.cluster import RayExecutor  # here: Ray is an extra

    return RayExecutor(pool, address=cluster, workers=workers)
