"""The runs of the doctor's study: which there are, how one is trained, and what it answers."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from doctor_plants import Plant
from doctor_plants_model import MODEL_PLANTS
from doctor_plants_training import TRAINING_PLANTS
from doctor_second import SECOND_PLANTS
from doctor_tasks import (
    HEALTHY_SEEDS,
    SECOND_HEALTHY,
    SECOND_SEEDS,
    SECOND_VARIANTS,
    SEEDS,
    TASKS,
    base,
    healthy,
    healthy_variants,
)
from torch import Tensor

from attnlab.errors import LabError
from attnlab.front.run import Run
from attnlab.model import Model
from attnlab.runs import create_run
from attnlab.sets import Examples
from attnlab.specs import Spec, Task, with_settings
from attnlab.storage import write_json
from attnlab.training import train_run

PLANTS = [*TRAINING_PLANTS, *MODEL_PLANTS]
OUTCOME = "outcome.json"
EARLY = 0.2
"""The share of the steps after which faults should be found."""

FIRST_HEALTHY, SECOND, SECOND_FIRST_HEALTHY = 100, 200, 300
"""The first seeds of healthy runs, which share none with sick ones, and those of the second set apart."""


@dataclass(frozen=True)
class Job:
    """One training: a plant in a task, or a healthy variant of it."""

    task: str
    seed: int
    plant: Plant | None = None
    twin: bool = False
    """The healthy training that the plant is compared with."""
    variant: str = ""

    @property
    def is_second(self) -> bool:
        """Whether it belongs to the second set apart."""
        return self.seed >= SECOND

    @property
    def number(self) -> int:
        """Of the seeds of its kind of job, from 0 on."""
        return self.seed % FIRST_HEALTHY

    @property
    def name(self) -> str:
        what = f"variant-{self.variant}" if self.plant is None else self.plant.name
        if self.plant is not None and self.twin:
            what = "twin-" + self._twin_words()
        return f"{self.task}-{re.sub('[^a-z0-9]+', '-', what.lower()).strip('-')}-s{self.seed}"

    def spec(self) -> Spec:
        """What is trained."""
        if self.plant is None:
            return replace(healthy(self.task, self.variant), seed=self.seed)
        spec = replace(base(self.task, self.plant.base), seed=self.seed)
        return self.plant.twin(spec) if self.twin else self.plant.sick(spec)

    @contextmanager
    def planted(self) -> Iterator[None]:
        """With the fault, if there is one."""
        sick = self.plant is not None and not self.twin
        with self.plant.planted(self.spec()) if sick and self.plant is not None else nullcontext():
            yield

    @property
    def is_setting(self) -> bool:
        """Whether the fault is nothing but other settings, so that a setting can cure it."""
        plant = self.plant
        if plant is None or plant.model is not None or plant.splits is not None or plant.replaced:
            return False
        return bool(plant.settings(base(self.task, plant.base)))

    def healthy(self) -> "Job":
        """The twin of a sick job."""
        return replace(self, twin=True)

    def _twin_words(self) -> str:
        """Twins of several plants are the same run if their specs are."""
        assert self.plant is not None
        settings = self.plant.healthy(base(self.task, self.plant.base))
        return "-".join([self.plant.base, *(f"{name}-{value}" for name, value in settings.items())])


def sick_jobs() -> list[Job]:
    """Every plant in every task that it fits, with the seeds of the task, seed by seed."""
    return [
        Job(task, seed, plant)
        for seed in range(max(SEEDS.values()))
        for task in SEEDS
        for plant in PLANTS
        if task in plant.tasks and seed < SEEDS[task]
    ]


def twin_jobs(jobs: list[Job]) -> list[Job]:
    """The healthy twins of ``jobs``, each once."""
    return list({twin.name: twin for twin in (job.healthy() for job in jobs)}.values())


def healthy_jobs() -> list[Job]:
    """Every variant of every task, with seeds of its own."""
    return [
        Job(task, FIRST_HEALTHY + seed, variant=variant)
        for seed in range(max(HEALTHY_SEEDS.values()))
        for task in TASKS
        for variant in healthy_variants(task)
        if seed < HEALTHY_SEEDS[task]
    ]


def second_sick_jobs() -> list[Job]:
    """Those of the second set apart."""
    return [
        Job(task, SECOND + number, plant)
        for number in range(max(SECOND_SEEDS.values()))
        for task in SECOND_SEEDS
        for plant in SECOND_PLANTS
        if task in plant.tasks and number < SECOND_SEEDS[task]
    ]


def second_healthy_jobs() -> list[Job]:
    """Those of the second set apart."""
    return [
        Job(task, SECOND_FIRST_HEALTHY + number, variant=variant)
        for number in range(max(SECOND_HEALTHY.values()))
        for task in SECOND_HEALTHY
        for variant in SECOND_VARIANTS
        if number < SECOND_HEALTHY[task]
    ]


def train_job(job: Job, folder: Path) -> dict[str, Any]:
    """Train ``job`` below ``folder`` unless it is there, and write down what it answers."""
    path = folder / job.name
    if (path / OUTCOME).exists():
        return read_outcome(job, folder)
    return train_spec(job, job.spec(), path)


def train_spec(job: Job, spec: Spec, path: Path) -> dict[str, Any]:
    """Train ``spec`` with the fault of ``job``."""
    clean = spec.task.splits(spec.seed).test  # before anything is planted
    torch.set_num_threads(1)
    with job.planted():
        spec = with_early_weights(spec)
        run = Run(path) if path.exists() else Run(create_run(path, spec).path)
        failure = ""
        try:
            train_run(run, checkpoint_seconds=1e9)
        except LabError as error:
            failure = str(error)
        outcome: dict[str, Any] = {"failure": failure}
        if not failure:
            right = answers_right(run.model, spec.task, clean)
            valid = max(run.metrics().epochs, key=lambda each: each.best * each.step)
            outcome |= {"right": right.int().tolist(), "reported": valid.valid_exact_match}
    write_json(path / OUTCOME, outcome)
    return outcome


def with_early_weights(spec: Spec) -> Spec:
    """The spec that keeps the weights after a fifth of the steps, as training sees its data."""
    steps = math.ceil(len(spec.task.splits(spec.seed).train) / spec.training.batch) * spec.training.epochs
    return with_settings(spec, {"training.snapshots": (0, max(1, round(EARLY * steps)))})


def read_outcome(job: Job, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / job.name / OUTCOME).read_text())
    return found


@torch.no_grad()
def answers_right(model: Model, task: Task, examples: Examples) -> Tensor:
    """Which examples are wholly right when the model answers by itself."""
    torch.manual_seed(0)
    first, targets = examples.inputs[0], examples.targets
    if targets.dim() == 1:
        return model(*examples.inputs).argmax(dim=-1) == targets
    assert task.start is not None
    said = model.answer(first, start=task.start, length=targets.shape[1])
    return (said == targets).all(dim=1)
