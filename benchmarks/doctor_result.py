"""The result of the doctor's study: which runs count, what was named, what is cured, how sure that is."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

from doctor_jobs import (
    PLANTS,
    Job,
    healthy_jobs,
    read_outcome,
    second_healthy_jobs,
    second_sick_jobs,
    sick_jobs,
    twin_jobs,
)
from doctor_plants import set_apart
from doctor_scoring import HEALTHY, Row, accuracy, counted, does_harm, intervals, scores
from doctor_tasks import APART, LEAST

from attnlab.runs import describe_environment

DIAGNOSIS, EARLY_DIAGNOSIS, CURE = "study-diagnosis.json", "study-early.json", "study-cure.json"
SET_APART = set_apart(PLANTS)
HALF = 0.5
"""A kind is found early if the first fifth of the steps shows it in this share of its runs."""


Part = Literal["chosen", "apart", "second"]
"""The half that thresholds were chosen by, what was set apart, and what was set apart later."""


def part_of(job: Job) -> Part:
    if job.is_second:
        return "second"
    apart = job.seed % 2 == 1 if job.plant is None else job.plant.name in SET_APART
    return "apart" if apart or job.task == APART else "chosen"


def read_diagnosis(job: Job, folder: Path, name: str = DIAGNOSIS) -> dict[str, Any] | None:
    path = folder / job.name / name
    found: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    return found


def trained(job: Job, folder: Path) -> bool:
    return (folder / job.name / "outcome.json").exists()


@cache
def harmful(job: Job, folder: Path) -> bool:
    """Whether the fault did harm in this very run."""
    if not all(trained(each, folder) for each in (job, job.healthy())):
        return False
    return does_harm(job, read_outcome(job, folder), read_outcome(job.healthy(), folder))


def well(job: Job, folder: Path) -> bool:
    """Whether a healthy run has learned its task."""
    return trained(job, folder) and accuracy(read_outcome(job, folder)) >= LEAST[job.task]


def result(folder: Path, sick: list[Job], healthy: list[Job], part: Part) -> dict[str, Any]:
    """The table of the study."""
    done = [job for job in sick if trained(job, folder)]
    kept = [job for job in done if harmful(job, folder)]
    fit = [job for job in healthy if well(job, folder)]
    rows = [row(job, folder) for job in [*kept, *fit] if read_diagnosis(job, folder) is not None]
    tasks = dict.fromkeys(each.job.task for each in rows)
    return {
        "what": "faults planted in small trainings: what the doctor names first",
        "command": f"python benchmarks/doctor.py score --part {part}",
        "environment": describe_environment().to_json(),
        "part": part,
        "sizes": sizes(folder, part),
        "planted": len(done),
        "harmless": harmless(done, kept),
        "kept": len(kept),
        "healthy_trained": sum(trained(job, folder) for job in healthy),
        "healthy_kept": len(fit),
        "all": scores(rows),
        "intervals": intervals(rows),
        "by_task": {task: scores([each for each in rows if each.job.task == task]) for task in tasks},
        "missed": [
            [each.job.name, each.truth, each.named[:3]] for each in rows if each.first != each.truth
        ],
        "early": early(kept, fit, folder),
        "cures": cures(kept, folder),
    }


def sizes(folder: Path, part: Part) -> dict[str, dict[str, int]]:
    """How many runs there could be, and how many were trained; of both halves together."""
    second = part == "second"
    sick = second_sick_jobs() if second else sick_jobs()
    healthy = second_healthy_jobs() if second else healthy_jobs()
    every = {"sick": sick, "twins": twin_jobs(sick), "healthy": healthy}
    return {
        name: {"planned": len(jobs), "trained": sum(trained(job, folder) for job in jobs)}
        for name, jobs in every.items()
    }


def row(job: Job, folder: Path) -> Row:
    found = read_diagnosis(job, folder)
    assert found is not None
    named = [each["kind"] for each in found["findings"] if each["severity"] != "note"]
    return Row(job, job.plant.kind if job.plant else HEALTHY, named)


def early(kept: list[Job], fit: list[Job], folder: Path) -> dict[str, Any]:
    """By kind: the share of sick runs whose fault is named, at any rank, after a fifth of the steps; and
    how many healthy runs are accused by then.
    """
    found: dict[str, list[bool]] = {}
    for job in kept:
        told = read_diagnosis(job, folder, EARLY_DIAGNOSIS)
        if job.plant is not None and told is not None:
            kinds = [each["kind"] for each in told["findings"]]
            found.setdefault(job.plant.kind, []).append(job.plant.kind in kinds)
    accused = [
        any(each["severity"] != "note" for each in told["findings"])
        for job in fit
        if (told := read_diagnosis(job, folder, EARLY_DIAGNOSIS)) is not None
    ]
    return {
        "by_kind": {kind: counted(each) for kind, each in sorted(found.items())},
        "kinds": len(found),
        "kinds_found": sum(sum(each) >= HALF * len(each) for each in found.values()),
        "false_alarms": counted(accused),
    }


def harmless(done: list[Job], kept: list[Job]) -> dict[str, str]:
    """Runs of a plant that do no harm, which do not count, of all its runs."""
    names = [job.plant.name for job in done if job.plant is not None]
    harm = [job.plant.name for job in kept if job.plant is not None]
    return {
        name: f"{names.count(name) - harm.count(name)} of {names.count(name)}"
        for name in sorted(set(names))
        if names.count(name) > harm.count(name)
    }


def cures(kept: list[Job], folder: Path) -> dict[str, Any]:
    """Of runs whose fault is a setting: how many are cured by the first finding's remedy."""
    tried: dict[Job, bool] = {}
    for job in kept:
        if job.is_setting and (folder / job.name / CURE).exists():
            tried[job] = is_cured(job, folder)
    kinds: dict[str, list[bool]] = {}
    for job, good in tried.items():
        assert job.plant is not None
        kinds.setdefault(job.plant.kind, []).append(good)
    return {
        "curable": sum(job.is_setting for job in kept),
        "all": counted(list(tried.values())),
        "by_kind": {kind: counted(each) for kind, each in sorted(kinds.items())},
        "not_cured": [told_cure(job, folder) for job, good in tried.items() if not good],
    }


def told_cure(job: Job, folder: Path) -> list[Any]:
    cure = json.loads((folder / job.name / CURE).read_text())
    healthy = accuracy(read_outcome(job.healthy(), folder))
    return [job.name, cure["kind"], cure["settings"], cure["accuracy"], healthy]


def is_cured(job: Job, folder: Path) -> bool:
    """Within one point or 5% of the healthy twin."""
    cure = json.loads((folder / job.name / CURE).read_text())
    healthy = accuracy(read_outcome(job.healthy(), folder))
    return cure["accuracy"] is not None and cure["accuracy"] >= healthy - max(0.01, 0.05 * healthy)
