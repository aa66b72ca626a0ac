"""Running a sweep with live progress; the best specs can be trained again with fresh seeds."""

import re
from dataclasses import replace
from pathlib import Path

from attnlab.display import say, stop_on_signal
from attnlab.specs import Spec
from attnlab.studies.board import Board
from attnlab.studies.conduct import run_study
from attnlab.studies.jobs import ENDS, Event
from attnlab.studies.running import check_pool, drive, open_executor
from attnlab.studies.sweeps.outcome import best_again, collect_sweep, keep_sweep
from attnlab.studies.sweeps.parts import SweepFile, SweepResult
from attnlab.studies.sweeps.search import Sweep, storing
from attnlab.training.trackers import Tracker

SWEEPS = Path("runs/sweeps")


def sweep_folder(name: str, out: str | Path | None) -> Path:
    """Where a sweep is kept: in ``out``, by default runs/sweeps/NAME."""
    return Path(out) if out else SWEEPS / re.sub(r"[^\w-]+", "-", name)


def run_sweep(
    file: SweepFile,
    base: Spec,
    *,
    count: int,
    seed: int,
    workers: int | None,
    cluster: str | None,
    out: str | Path | None,
    pool: Path,
    retrain: int,
    retrain_seeds: int,
    track: tuple[Tracker, ...],
    command: str,
) -> SweepResult:
    """Run trials until there are enough, and keep what was found; ``command`` does the same."""
    folder = sweep_folder(file.name, out)
    with Sweep(file, base, folder, seed=seed, count=count, tracks=track) as sweep, storing(folder):
        for note in file.notes:
            say(note)
        check_pool(pool)
        finished = _run(sweep, pool, workers=workers, cluster=cluster)
        found = replace(collect_sweep(sweep, pool, command=command), complete=finished)
        if not finished:
            return found
        keep_sweep(sweep, found)
        if not retrain or not found.ranking:
            return found
        study = best_again(sweep, found, count=retrain, seeds=retrain_seeds)
        best = folder / "best"
        again = run_study(study, pool=pool, out=best, workers=workers, cluster=cluster, track=track)
        return replace(found, retrained=again, complete=again.complete)


def _run(sweep: Sweep, pool: Path, *, workers: int | None, cluster: str | None) -> bool:
    """Run trials with live progress until there are enough; False if it was stopped before."""
    done = len([trial for trial in sweep.counted() if trial.state.is_finished()])
    if sweep.is_over():
        say(f"{sweep.file.name}: {done} trials are done, in {sweep.folder}")
        return True
    say(f"{sweep.file.name}: {sweep.count - done} of {sweep.count} trials to do, in {sweep.folder}")
    board = Board(sweep.file.name, sweep.count, done, "trials")
    with (
        stop_on_signal() as stopping,
        open_executor(pool, workers=workers, cluster=cluster) as executor,
        board,
    ):

        def handle(event: Event) -> None:
            board.name(event.job, f"trial {sweep.number_of(event.job)}")
            if event.kind == "epoch":
                go_on = sweep.epoch(event)
                if go_on is not None and not stopping():  # a job that was asked to stop does not wait
                    executor.answer(event.job, go_on=go_on)
            board.see(event)
            if event.kind in ENDS:
                sweep.end(event, pool)

        drive(executor, pool, next_job=sweep.next_job, handle=handle, stopping=stopping)
        if stopping():
            say("stopped and saved")
        return not stopping()
