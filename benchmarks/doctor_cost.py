"""What the doctor costs: watching beside training, and a diagnosis of every shipped run.

    python benchmarks/doctor_cost.py watching   # results/doctor/overhead.json, some minutes
    python benchmarks/doctor_cost.py diagnosis  # results/doctor/time.json

Trainings of one thread with and without watching take turns. The ratio is that of their processor time,
which hangs less on what else the machine does than the time on the clock; both are told.
"""

import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import attnlab as al

# isort: split
import torch
import tyro
from doctor_scoring import middle

from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.patient import Patient
from attnlab.front.run import Run
from attnlab.runs import create_run, describe_environment
from attnlab.specs import Spec, with_settings
from attnlab.storage import write_json
from attnlab.training.events import Listener
from attnlab.training.observer import Observer
from attnlab.training.records import MetricsLog
from attnlab.training.trainer import Trainer

STEPS = 300
TRAININGS = {"addition": "default", "sorting": "default", "digits": "vit"}
GOAL = {"watching": 0.03, "diagnosis": 20.0}


@dataclass(frozen=True)
class Options:
    """What to measure."""

    what: Annotated[Literal["watching", "diagnosis"], tyro.conf.Positional]
    rounds: int = 3
    """Pairs of trainings."""
    steps: int = STEPS
    """Steps of each training."""
    out: Path = Path("results/doctor")
    """Where the result is written."""


def main(options: Options) -> None:
    torch.set_num_threads(1)
    load = os.getloadavg()[0]  # what others compute: near 0 where the machine is quiet
    name = "overhead" if options.what == "watching" else "time"
    rows = watching(options) if options.what == "watching" else diagnosis()
    found = {
        "what": "watching beside training" if options.what == "watching" else "a diagnosis of shipped runs",
        "command": f"python benchmarks/doctor_cost.py {options.what}",
        "environment": describe_environment().to_json(),
        "goal": GOAL[options.what],
        "load_before": load,
        "rows": rows,
    }
    print(json.dumps(found, indent=1))
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / f"{name}.json", found)


def watching(options: Options) -> list[dict[str, Any]]:
    rows = []
    for task, preset in TRAININGS.items():
        spec = with_settings(al.spec(task, preset=preset), {"training.threads": 1})
        spec = with_settings(spec, {"training.steps": options.steps, "training.epochs": options.steps})
        _seconds(spec, watched=True)  # what is made once is made here
        pairs = []
        for number in range(options.rounds):
            order = (False, True) if number % 2 else (True, False)
            taken = {watched: _seconds(spec, watched=watched) for watched in order}
            pairs.append((taken[False], taken[True]))
        ratios = {
            name: [with_[at] / without[at] for without, with_ in pairs]
            for at, name in enumerate(("processor", "clock"))
        }
        rows.append(
            {
                "training": f"{task}/{preset}",
                "steps": options.steps,
                "seconds": median(without[0] for without, _ in pairs),
                "ratio": {name: median(each) for name, each in ratios.items()},
                "range": {name: middle(torch.tensor(each).numpy()) for name, each in ratios.items()},
            }
        )
    return rows


def _seconds(spec: Spec, *, watched: bool) -> tuple[float, float]:
    """Processor time and time on the clock of all steps, with log and watching or without both."""
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(Path(folder) / "run", spec)
        trainer = Trainer(spec)
        listeners: tuple[Listener, ...] = (MetricsLog(run, goes_on=False), Observer(run)) if watched else ()
        began = time.process_time(), time.perf_counter()
        trainer.train(listeners)
        return time.process_time() - began[0], time.perf_counter() - began[1]


def diagnosis() -> list[dict[str, Any]]:
    rows = []
    for path in sorted(each.parent for each in Path(al.__file__).parent.glob("zoo/*/spec.json")):
        began = time.process_time(), time.perf_counter()
        found = diagnose(Patient(path.name, run=Run(path)))
        rows.append(
            {
                "run": f"zoo:{path.name}",
                "processor_seconds": time.process_time() - began[0],
                "seconds": time.perf_counter() - began[1],
                "findings": [f"{each.kind} ({each.severity})" for each in found.findings],
                "unchecked": [each.kind for each in found.unchecked],
            }
        )
    return rows


if __name__ == "__main__":
    main(tyro.cli(Options))
