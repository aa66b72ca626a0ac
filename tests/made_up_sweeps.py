"""Sweeps whose runs are made up: a function says how well a spec does, and nothing is trained."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import log10
from pathlib import Path
from typing import Any

from attnlab.presets import preset
from attnlab.specs import Spec
from attnlab.studies.jobs import Event, Job, run_name
from attnlab.studies.sweeps.file import read_sweep
from attnlab.studies.sweeps.outcome import collect_sweep
from attnlab.studies.sweeps.parts import SweepFile
from attnlab.studies.sweeps.search import Sweep
from tiny import TINY

SWEEPS = Path(__file__).parents[1] / "sweeps"
WIDE = preset("addition", "default")
LR = {"training.lr": "log 1e-4 .. 1e-1"}
MANY = {**LR, "model.dropout": "0.0 .. 0.3", "model.heads": [1, 2, 3, 4]}
PRUNE = {"prune": {"min_epochs": 1, "factor": 3}, "set": {"training.epochs": 4}}
Score = Callable[[Spec, int], float]
"""The metric of a spec after so many epochs."""


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder in memory where there is such a thing, since Optuna waits for the disk at every step."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def short(search: dict[str, Any], **changes: Any) -> SweepFile:
    return read_sweep({"search": search, **changes}, "small")


def opened(file: SweepFile, folder: Path, *, base: Spec = TINY, seed: int = 0, count: int = 99) -> Sweep:
    return Sweep(file, base, folder / "sweep", seed=seed, count=count)


def by_rate(spec: Spec, epoch: int) -> float:
    """Best at a learning rate of 0.01, and better with every epoch."""
    return 1 - abs(log10(spec.training.lr) + 2) / 4 - 0.1 / epoch


def tell(sweep: Sweep, job: Job, kind: Any, pool: Path, **data: Any) -> None:
    sweep.end(Event(job=job.name, kind=kind, data=data), pool)


def tell_epoch(sweep: Sweep, job: Job, epoch: int, value: float) -> bool | None:
    return sweep.epoch(Event(job=job.name, kind="epoch", data=line(epoch, value)))


def line(epoch: int, value: float, *, best: bool = True) -> dict[str, Any]:
    measured = {"valid_exact_match": value, "valid_token_accuracy": value, "valid_loss": 1 - value}
    fixed = {"event": "epoch", "step": 10 * epoch, "epoch": epoch, "loss": 1.0, "seconds": 0.5}
    return {**fixed, **measured, "best": best}


def make_run(pool: Path, spec: Spec, lines: list[dict[str, Any]], parameters: int = 7) -> None:
    """What a worker leaves behind."""
    run = pool / run_name(spec)
    run.mkdir(parents=True, exist_ok=True)
    (run / "spec.json").write_text("{}")
    (run / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    ended = {"steps": 1, "epochs": len(lines), "seconds": 2.0, "parameters": parameters}
    (run / "summary.json").write_text(json.dumps({**ended, "valid": {"exact_match": 0.5}}))


def work(sweep: Sweep, job: Job, pool: Path, score: Score) -> None:
    """Do a job as a worker does, telling every epoch from the first one on."""
    lines: list[dict[str, Any]] = []
    for epoch in range(1, job.spec.training.epochs + 1):
        value = score(job.spec, epoch)
        lines.append(
            line(epoch, value, best=value > max((e["valid_exact_match"] for e in lines), default=-1))
        )
        answer = tell_epoch(sweep, job, epoch, value)
        assert (answer is not None) == job.asks
        if answer is False:
            make_run(pool, job.spec, lines)
            (pool / job.name / "summary.json").unlink()
            return tell(sweep, job, "pruned", pool)
    make_run(pool, job.spec, lines)
    return tell(sweep, job, "finished", pool)


def play(sweep: Sweep, pool: Path, score: Score = by_rate) -> None:
    """Do all jobs, one after the other."""
    while (job := sweep.next_job()) is not None:
        work(sweep, job, pool, score)


def outcome_of(sweep: Sweep, pool: Path) -> dict[str, Any]:
    """All that does not depend on the clock, the machine and where things lie."""
    found = collect_sweep(sweep, pool, command="").to_json()
    return {key: value for key, value in found.items() if key not in ("environment", "timings")}


def played(
    file: SweepFile, folder: Path, score: Score = by_rate, **options: Any
) -> tuple[dict[str, Any], Path]:
    """The outcome of a whole sweep, and its pool."""
    pool = folder / "pool"
    with opened(file, folder, **options) as sweep:
        play(sweep, pool, score)
        return outcome_of(sweep, pool), pool


def specs_of(outcome: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(trial["parameters"].values()) for trial in outcome["trials"]]


def jobs(sweep: Sweep, count: int) -> list[Job]:
    """So many jobs at once, as for parallel workers."""
    found = [sweep.next_job() for _ in range(count)]
    return [job for job in found if job is not None]
