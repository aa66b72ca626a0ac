"""``attnlab sweep``: a search over specs, offline."""

import re
from dataclasses import dataclass
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING

from attnlab.cli.board import Board
from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import Json, Positional, parse
from attnlab.cli.study import EXIT_STOPPED, POOL, Cluster, Pool, Track, Workers, check_trackers, run_study
from attnlab.cli.study import show as show_study
from attnlab.display import say, stop_on_signal
from attnlab.errors import SpecError
from attnlab.presets import preset
from attnlab.report.study_results import write_results, write_sweep_figures
from attnlab.specs import require
from attnlab.studies.jobs import ENDS, Event
from attnlab.studies.running import check_pool, drive, open_executor
from attnlab.studies.sweeps.file import read_sweep_file

if TYPE_CHECKING:
    from attnlab.studies.sweeps.parts import SweepResult
    from attnlab.studies.sweeps.search import Sweep

SWEEPS = Path("runs/sweeps")
COUNT = 20
SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Search over specs as a sweep file says: one of Weights & Biases as it stands, or our short form.

    Stopped or killed, the same command goes on where it was; a higher --count extends the search. With
    --workers 1 the same seed gives the same search.

    Example: attnlab sweep sweeps/addition-short.yaml --count 20 --retrain 2
    """

    file: Positional[str]
    """The sweep file."""
    count: int | None = None
    """Trials in all; by default what the file says, or 20."""
    seed: int = 0
    """Seed of the search and of every run in it."""
    workers: Workers = None
    cluster: Cluster = None
    task: str | None = None
    """The task, if not the file's."""
    preset: str | None = None
    """The preset that the search starts from, if not the file's."""
    out: str | None = None
    """Folder of the sweep; by default runs/sweeps/NAME."""
    pool: Pool = POOL
    retrain: int = 0
    """Train so many of the best specs again with fresh seeds and compare them on test data."""
    retrain_seeds: int = 5
    """Fresh seeds for that."""
    track: Track = ()
    json: Json = False

    def __post_init__(self) -> None:
        require(self.count is None or self.count >= 1, "--count", self.count, "at least 1")
        require(self.retrain >= 0, "--retrain", self.retrain, "at least 0")
        require(self.retrain_seeds >= 1, "--retrain-seeds", self.retrain_seeds, "at least 1")
        require(self.workers is None or self.workers >= 1, "--workers", self.workers, "at least 1")
        check_trackers(self.track)


def main(arguments: list[str]) -> int:
    options = parse(SweepOptions, arguments, command="sweep")
    with _open(options) as sweep:
        from attnlab.studies.sweeps.search import storing

        with storing(sweep.folder):
            check_pool(Path(options.pool))
            return _conclude(sweep, options) if _run(sweep, options) else EXIT_STOPPED


def _open(options: SweepOptions) -> "Sweep":
    file = read_sweep_file(Path(options.file))
    if not options.task and file.task.partition(":")[0].endswith(".py"):
        raise SpecError(
            f"{options.file} names the task file {file.task}, whose code would be run; if you know it, say "
            f"--task {file.task}"
        )
    base = preset(options.task or file.task, options.preset or file.preset)
    from attnlab.studies.sweeps.search import Sweep

    sweep = Sweep(
        file,
        base,
        Path(options.out) if options.out else SWEEPS / re.sub(r"[^\w-]+", "-", file.name),
        seed=options.seed,
        count=options.count or file.count or COUNT,
        tracks=options.track,
    )
    for note in file.notes:
        say(note)
    return sweep


def _run(sweep: "Sweep", options: SweepOptions) -> bool:
    """Run trials with live progress until there are enough; False if it was stopped before."""
    done = len([trial for trial in sweep.counted() if trial.state.is_finished()])
    if sweep.is_over():
        say(f"{sweep.file.name}: {done} trials are done, in {sweep.folder}")
        return True
    say(f"{sweep.file.name}: {sweep.count - done} of {sweep.count} trials to do, in {sweep.folder}")
    board = Board(sweep.file.name, sweep.count, done, "trials")
    pool = Path(options.pool)
    with (
        stop_on_signal() as stopping,
        open_executor(pool, workers=options.workers, cluster=options.cluster) as executor,
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
            say("stopped and saved; the same command goes on")
        return not stopping()


def _conclude(sweep: "Sweep", options: SweepOptions) -> int:
    """Collect, keep and show what was found; train the best again if that is wanted."""
    from attnlab.studies.sweeps.outcome import best_again, collect_sweep, keep_sweep, scales

    pool = Path(options.pool)
    # all that decides the outcome of one worker
    words = ["attnlab", "sweep", options.file, "--count", str(sweep.count), "--seed", str(options.seed)]
    for flag, value in (("--task", options.task), ("--preset", options.preset)):
        words += [] if value is None else [flag, value]
    outcome = collect_sweep(sweep, pool, command=join(words))
    keep_sweep(sweep, outcome)
    write_sweep_figures(outcome, scales(sweep), sweep.folder)
    again = None
    if options.retrain and outcome.ranking:
        study = best_again(sweep, outcome, count=options.retrain, seeds=options.retrain_seeds)
        again = run_study(
            study, pool, workers=options.workers, cluster=options.cluster, track=options.track
        )
        if again is None:
            return EXIT_STOPPED
        write_results(again, sweep.folder / "best")
    if options.json:
        print_json({**outcome.to_json(), "retrained": again})
    else:
        _show(sweep, outcome)
        if again is not None:
            show_study(again)
    return 0


def _show(sweep: "Sweep", outcome: "SweepResult") -> None:
    from attnlab.studies.sweeps.outcome import ENOUGH, trials_table

    table = trials_table(outcome, rows=SHOWN)
    print_table(table.title, table.columns, table.rows)
    if len(outcome.trials) > SHOWN:
        print(f"the best {SHOWN} of {len(outcome.trials)}; all are in {sweep.folder / 'trials.json'}")
    if outcome.ended:
        print(f"The search ended early: {outcome.ended}.")
    if outcome.skipped:
        reason = outcome.skipped[0].reason
        print(f"{len(outcome.skipped)} combinations were impossible, such as: {reason}.")
    for trial in outcome.trials:
        if trial.error:
            print(f"Trial {trial.number} failed: {trial.error}.")
    if outcome.importance:
        shares = ", ".join(f"{key} {100 * share:.0f}%" for key, share in outcome.importance.items())
        print(f"Importance (share of the variance, functional ANOVA): {shares}.")
    else:
        print(f"Importance needs {ENOUGH} finished trials with different values.")
    for sentence in outcome.edges:
        print(f"At the edge: {sentence}.")
    if outcome.best is not None:
        say(
            f"best spec: {sweep.folder / 'best.json'}; train it with: "
            f"attnlab train --spec {quote(str(sweep.folder / 'best.json'))}"
        )
    say(f"pictures: history.svg, parallel.svg and importance.svg in {sweep.folder}")
