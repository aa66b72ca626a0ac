"""Running a study: every run that is not finished yet, on whatever executor there is."""

from collections.abc import Callable
from pathlib import Path

from attnlab.errors import LabError
from attnlab.storage import refusing
from attnlab.studies.driving import Executor, drive
from attnlab.studies.jobs import Event, Job, failure, is_done, pool_run
from attnlab.studies.study import Study
from attnlab.training.trackers import Tracker


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
        return retry or not failed.get("final")
    return not is_done(run, job.analyses)


def check_pool(pool: Path) -> None:
    """Refuse a pool that is no folder, before any work."""
    if pool.exists() and not pool.is_dir():
        raise LabError(f"{pool} is no folder; choose another with --pool")
    with refusing(pool):
        pool.mkdir(parents=True, exist_ok=True)
