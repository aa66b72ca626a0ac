"""How well does the doctor do? Faults planted in small trainings, and healthy trainings beside them.

    python benchmarks/doctor.py train               # hours of one core; goes on where it stopped
    python benchmarks/doctor.py diagnose
    python benchmarks/doctor.py cure
    python benchmarks/doctor.py score                  # the half that thresholds were chosen by
    python benchmarks/doctor.py diagnose --part apart  # the half and the problem that were set apart: once
    python benchmarks/doctor.py cure --part apart
    python benchmarks/doctor.py score --part apart
    python benchmarks/doctor.py train --part second    # the second set apart, an hour; then as above

Every plant of ``doctor_plants_*.py`` is trained in each task it fits. A sick run counts if it does harm, by
a test paired with its healthy twin. Of each kind one half of the plants and the whole task ``sorting`` are
set apart: no threshold was chosen by them. What is set apart is scored once; a second time has to be asked
for and is written down. What the first set apart showed was mended since, so ``doctor_second.py`` sets
plants, problems and seeds of its own apart.
"""

import json
import multiprocessing
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import attnlab  # noqa: F401  # before torch, which reads how threads wait when it is loaded

# isort: split
import torch
import tyro
from doctor_jobs import (
    Job,
    healthy_jobs,
    second_healthy_jobs,
    second_sick_jobs,
    sick_jobs,
    train_job,
    train_spec,
    twin_jobs,
)
from doctor_result import (
    CURE,
    DIAGNOSIS,
    EARLY_DIAGNOSIS,
    Part,
    harmful,
    part_of,
    read_diagnosis,
    result,
    trained,
)
from doctor_scoring import accuracy

from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.findings import Remedy
from attnlab.doctor.patient import Patient
from attnlab.doctor.remedies import cured_spec
from attnlab.front.run import Run
from attnlab.runs.weights import snapshot_name
from attnlab.storage import write_json

OBSERVED = "observed.json"


@dataclass(frozen=True)
class Options:
    """What to do."""

    stage: Annotated[Literal["train", "diagnose", "cure", "score"], tyro.conf.Positional]
    part: Part = "chosen"
    """What thresholds were chosen by, what was set apart, or what was set apart later. Training does the
    first two together.
    """
    tasks: tuple[str, ...] = ()
    """Which tasks; none: all."""
    kinds: tuple[str, ...] = ()
    """Which kinds of fault; none: all, and the healthy runs."""
    seeds: int = 5
    """At most so many seeds."""
    workers: int = 2
    """Runs side by side, each with one thread."""
    early: bool = True
    """Diagnose what was known after a fifth of the steps as well."""
    again: bool = False
    """Do anew what was done before: diagnoses, cures, or the score of what was set apart."""
    runs: Path = Path("runs/benchmark-doctor")
    """Where the runs are kept."""
    out: Path = Path("results/doctor")
    """Where the result is written."""

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return not self.kinds and not self.tasks


def main(options: Options) -> None:
    options.runs.mkdir(parents=True, exist_ok=True)
    require_unseen(options)
    sick, healthy = wanted_sick(options), wanted_healthy(options)
    folder = options.runs
    match options.stage:
        case "train":
            each(options, in_rounds(sick, healthy), partial(train_wanted, folder=folder))
        case "diagnose":
            kept = [job for job in sick if harmful(job, folder)]
            each(
                options,
                [*kept, *healthy],
                partial(diagnose_job, folder=folder, early=options.early, again=options.again),
            )
        case "cure":
            wanted = [job for job in sick if job.is_setting and harmful(job, folder)]
            each(options, wanted, partial(cure_job, folder=folder, again=options.again))
        case "score":
            found = result(folder, sick, healthy, options.part)
            print(json.dumps(found, indent=1))
            if options.whole:
                keep(found, options)


def require_unseen(options: Options) -> None:
    """What was set apart is looked at once."""
    scored = options.out / f"{options.part}.json"
    if options.part != "chosen" and options.stage != "train" and scored.exists() and not options.again:
        sys.exit(f"{scored} is there: what was set apart is scored once. --again does it anew and says so")


def keep(found: dict[str, Any], options: Options) -> None:
    """Write the table; that of what was set apart knows how often it was made, and by which commit."""
    path = options.out / f"{options.part}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    if options.part != "chosen":
        before = json.loads(path.read_text())["scored"] if path.exists() else []
        found["scored"] = [*before, found["environment"]["commit"]]
    write_json(path, found)


def wanted_sick(options: Options) -> list[Job]:
    known = second_sick_jobs() if options.part == "second" else sick_jobs()
    if options.kinds:
        known = [job for job in known if job.plant is not None and job.plant.kind in options.kinds]
    return [job for job in known if is_wanted(job, options)]


def wanted_healthy(options: Options) -> list[Job]:
    if options.kinds:
        return []
    known = second_healthy_jobs() if options.part == "second" else healthy_jobs()
    return [job for job in known if is_wanted(job, options)]


def is_wanted(job: Job, options: Options) -> bool:
    if job.number >= options.seeds or (options.tasks and job.task not in options.tasks):
        return False
    return (options.stage == "train" and not job.is_second) or part_of(job) == options.part


def in_rounds(sick: list[Job], healthy: list[Job]) -> list[Job]:
    """One seed after the other, so that a study that is cut short has all kinds: twins, sick, healthy."""
    found = list[Job]()
    for number in range(1 + max((job.number for job in [*sick, *healthy]), default=0)):
        now = [job for job in sick if job.number == number]
        found += [*twin_jobs(now), *now, *(job for job in healthy if job.number == number)]
    return found


def each(options: Options, jobs: Sequence[Job], work: Callable[[Job], Any]) -> None:
    """Do ``work`` on all jobs, in processes; a failure is told and the others go on."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        futures = {pool.submit(guarded, work, job.name): job for job in jobs}
        for number, future in enumerate(as_completed(futures), 1):
            told = future.result()
            if told or number % 50 == 0:
                print(
                    f"{number} of {len(jobs)}  {futures[future].name}  {told}", file=sys.stderr, flush=True
                )


def train_wanted(job: Job, folder: Path) -> None:
    """Train ``job``, but for a fault that was trained in this task with the first seed and did no harm."""
    if job.plant is not None and not job.twin and job.number:
        before = replace(job, seed=job.seed - job.number)
        if trained(before, folder) and not harmful(before, folder):
            return
    train_job(job, folder)


@cache
def jobs_by_name() -> dict[str, Job]:
    sick = [*sick_jobs(), *second_sick_jobs()]
    return {job.name: job for job in [*sick, *twin_jobs(sick), *healthy_jobs(), *second_healthy_jobs()]}


def guarded(work: Callable[[Job], Any], name: str) -> str:
    """What went wrong with the job called ``name``; jobs hold functions, so they go by their names."""
    torch.set_num_threads(1)
    try:
        work(jobs_by_name()[name])
    except Exception:  # one broken run must not end a study of hours
        return traceback.format_exc()
    return ""


def diagnose_job(job: Job, folder: Path, *, early: bool = True, again: bool = False) -> None:
    """What the doctor says, without experiments; kept beside the run."""
    path = folder / job.name
    if not (path / "outcome.json").exists() or ((path / DIAGNOSIS).exists() and not again):
        return
    with job.planted():
        found = diagnose(Patient(job.name, run=Run(path)))
        if early:
            write_json(path / EARLY_DIAGNOSIS, diagnose(Patient(job.name, run=early_run(path))).to_json())
    write_json(path / DIAGNOSIS, found.to_json())


def early_run(path: Path) -> Run:
    """The run as it stood after the first fifth of its steps."""
    early = path / "early"
    if not (early / "metrics.jsonl").exists():
        early.mkdir(exist_ok=True)
        step = int(json.loads((path / "spec.json").read_text())["training"]["snapshots"][-1])
        for name in ("spec.json", "environment.json", "task.py"):
            if (path / name).exists():
                shutil.copy(path / name, early / name)
        if (path / OBSERVED).exists():
            write_json(early / OBSERVED, up_to(step, json.loads((path / OBSERVED).read_text())))
        weights = path / snapshot_name(step)
        if weights.with_suffix(".safetensors").exists():
            shutil.copy(weights.with_suffix(".safetensors"), early / "best.safetensors")
        lines = (path / "metrics.jsonl").read_text().splitlines()
        kept = [line for line in lines if json.loads(line)["step"] <= step]
        (early / "metrics.jsonl").write_text("".join(f"{line}\n" for line in kept))
    return Run(early)


def up_to(step: int, observed: dict[str, Any]) -> dict[str, Any]:
    """What had been observed by then; counts are of the whole training, so they are left out."""
    diverged = observed["diverged"]
    return observed | {
        "steps": step,
        "samples": [each for each in observed["samples"] if each["step"] <= step],
        "losses": [each for each in observed["losses"] if each["step"] <= step],
        "diverged": diverged if diverged is not None and diverged <= step else None,
        "answers": None,
        "inputs": None,
    }


def cure_job(job: Job, folder: Path, *, again: bool = False) -> None:
    """Train again with the settings of the first finding's remedy; the fault stays where it is planted."""
    path, found = folder / job.name, read_diagnosis(job, folder)
    if found is None or ((path / CURE).exists() and not again):
        return
    first: dict[str, Any] = next(iter(found["findings"]), {"kind": None, "remedy": {}})
    settings = first["remedy"].get("settings", {})
    if (path / CURE).exists() and json.loads((path / CURE).read_text())["settings"] == settings:
        return
    cured: float | None = None
    if settings:
        shutil.rmtree(path / "cured", ignore_errors=True)
        spec = cured_spec(job.spec(), Remedy("", settings=settings))
        cured = accuracy(train_spec(job, spec, path / "cured"))
    write_json(path / CURE, {"kind": first["kind"], "settings": settings, "accuracy": cured})


if __name__ == "__main__":
    main(tyro.cli(Options))
