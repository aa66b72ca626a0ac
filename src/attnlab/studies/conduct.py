"""Running a study with live progress: what is missing is trained, then the result is kept."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

from attnlab.display import say, stop_on_signal
from attnlab.errors import ECHOED, RunError, shortened
from attnlab.studies.board import Board
from attnlab.studies.jobs import Event, run_name
from attnlab.studies.outcome import SHIPPED, StudyResult, collect, read_results, result_folder
from attnlab.studies.running import check_pool, check_workers, open_executor, open_jobs, run_jobs
from attnlab.studies.study import Study
from attnlab.training.trackers import Tracker, load_tracker


def run_study(
    study: Study,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    pool: Path,
    out: str | Path | None = None,
    retry: bool = False,
    track: tuple[Tracker, ...] = (),
) -> StudyResult:
    """Run what is missing; the result, which is kept once it is complete."""
    folder = result_folder(study.name, out)
    read_results(folder)  # refuses what another version wrote, before any work
    check_trackers(track)
    check_workers(workers)
    check_pool(pool)
    jobs = open_jobs(study, pool, retry=retry, tracks=track)
    titles = {run_name(spec): f"{variant}, seed {seed}" for variant, seed, spec in study.specs()}
    errors: list[str] = []
    stopped = False
    board = Board(study.name, len(titles), len(titles) - len(jobs))
    for job, title in titles.items():
        board.name(job, title)
    if jobs:
        with (
            stop_on_signal() as stopping,
            open_executor(pool, workers=workers, cluster=cluster) as executor,
        ):
            say(f"{study.name}: {len(jobs)} of {len(titles)} runs to do")
            Thread(target=_prepare, daemon=True).start()
            with board:
                run_jobs(jobs, pool, executor, handle=_heard(board, errors), stopping=stopping)
            stopped = stopping()
    result = collect(study, pool)
    if result.complete:
        result.save(folder)
    elif errors and not stopped:
        wanted, finished = result.runs.wanted, result.runs.finished
        raise RunError(
            f"{finished} of {wanted} runs of study {study.name} finished; the last one that failed: "
            f"{shortened(errors[-1], 2 * ECHOED)} (the same command goes on)"
        )
    else:
        say(f"stopped and saved, {result.runs.finished} of {result.runs.wanted} runs finished")
    return result


def _heard(board: Board, errors: list[str]) -> Callable[[Event], None]:
    """Show events, and note why runs failed that would not fail for good."""

    def see(event: Event) -> None:
        board.see(event)
        if event.kind in ("failed", "crashed"):
            errors.append(str(event.data.get("error", "its process ended")))

    return see


def show_study(study: Study, *, out: str | Path | None = None, pool: Path) -> StudyResult:
    """The kept result, or what the runs so far give, or else the result that comes with attnlab."""
    kept = read_results(result_folder(study.name, out))
    if kept is not None:
        if {each.name: each.runs for each in kept.variants} != _runs_of(study, len(kept.seeds)):
            say(f"the specs of {study.name} have changed since; this is what was kept")
        return kept
    result = collect(study, pool)
    if result.runs.finished:
        return result
    shipped = None if out else read_results(SHIPPED / study.name)
    if shipped is None:
        raise RunError(f"study {study.name} has no result yet; run it first")
    say(f"the result that comes with attnlab, in {SHIPPED / study.name}")
    return shipped


def check_trackers(track: tuple[Tracker, ...]) -> None:
    """Refuse a tracker that is not installed, before any work."""
    for name in track:
        load_tracker(name)


def _prepare() -> None:
    """Import what the result will need while the workers are at work: nobody waits for it then."""
    importlib.import_module("scipy.stats")
    importlib.import_module("attnlab.figures.studies")


def _runs_of(study: Study, seeds: int) -> dict[str, list[str]]:
    """Names of the runs of each variant with so many seeds."""
    study = replace(study, seeds=seeds)
    return {name: [run_name(study.spec(name, seed)) for seed in study.seed_list] for name in study.variants}
