"""A dozen tasks of one's own, each trained by the default: how many reach 99%, and how fast?

    python benchmarks/dozen.py                       # about an hour on two cores
    python benchmarks/dozen.py --tasks sort --seeds 1

Trains every task of ``dozen_tasks.py`` as ``attnlab train benchmarks/dozen_tasks.py:NAME`` does, with no
flag but the seed and one thread, and evaluates it on its test examples. The default was chosen by
validation examples of seeds from 100 on. Finished runs are not trained again. Seconds are those of runs
side by side.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import tyro
from calling import call

from attnlab.presets import preset
from attnlab.runs import describe_environment, open_run
from attnlab.specs import Spec, to_json
from attnlab.storage import write_json

FILE = Path(__file__).with_name("dozen_tasks.py")
NAMES = (
    *("reverse", "rotate", "copy", "sort", "count", "maximum"),
    *("brackets", "majority", "ends", "repeated", "modular", "lookup"),
)
ENOUGH = 0.99


@dataclass(frozen=True)
class Options:
    """What to measure."""

    tasks: tuple[str, ...] = NAMES
    """Which of the dozen."""
    seeds: int = 3
    """So many seeds, from ``first``."""
    first: int = 0
    """The first seed."""
    workers: int = 2
    """Runs side by side, each with one thread."""
    runs: Path = Path("runs/benchmark-dozen")
    """Where the runs are kept."""
    out: Path = Path("results/dozen/dozen.json")
    """The file to write."""


def main(options: Options) -> None:
    environment = describe_environment().to_json()
    options.runs.mkdir(parents=True, exist_ok=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    seeds = range(options.first, options.first + options.seeds)
    specs = {name: wanted(name, options.first) for name in options.tasks}
    jobs = [(name, seed) for seed in seeds for name in options.tasks]
    with ThreadPoolExecutor(options.workers) as pool:
        rows = list(pool.map(lambda job: measure(job[0], job[1], options.runs), jobs))
    tasks = {name: summary([row for row in rows if row["task"] == name]) for name in options.tasks}
    result = {
        "what": f"test accuracy of {len(specs)} tasks trained by the default",
        "command": "python benchmarks/dozen.py",
        "environment": environment,
        "specs": {name: to_json(spec) for name, spec in specs.items()},
        "seeds": list(seeds),
        "workers": options.workers,
        "enough": ENOUGH,
        "tasks": tasks,
        "reached": sum(task["lowest"] >= ENOUGH for task in tasks.values()),
        "total": len(tasks),
        "runs": rows,
    }
    write_json(options.out, result)
    print(json.dumps({key: result[key] for key in ("reached", "total", "tasks")}, indent=1))


def wanted(name: str, seed: int) -> Spec:
    """The default with one thread."""
    spec = preset(f"{FILE}:{name}", "default")
    return replace(spec, seed=seed, training=replace(spec.training, threads=1))


def measure(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train and evaluate a run, or read what is known of it."""
    run = folder / f"{name}-s{seed}"
    trained = train(run, name, seed)
    found, _ = call("evaluate", run)
    row = {
        "task": name,
        "seed": seed,
        "exact_match": found["exact_match"],
        "examples": found["examples"],
        "valid": trained["valid"]["exact_match"],
        "steps": trained["steps"],
        "wall_seconds": trained["seconds"],
        "parameters": trained["parameters"],
    }
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def train(run: Path, name: str, seed: int) -> dict[str, Any]:
    """Train a run to its end, or go on with it."""
    variables = {"OMP_NUM_THREADS": "1"}
    if not (run / "spec.json").exists():
        words = (f"{FILE}:{name}", "--seed", str(seed), "--training.threads", "1", "--out", run)
        return call("train", *words, variables=variables)[0]
    if open_run(str(run)).spec() != wanted(name, seed):
        sys.exit(f"{run} was trained with another spec; remove it or name another folder with --runs")
    return call("train", "--resume", run, variables=variables)[0]


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "lowest": min(row["exact_match"] for row in rows),
        "median": median(row["exact_match"] for row in rows),
        "median_steps": median(row["steps"] for row in rows),
        "median_wall_seconds": median(row["wall_seconds"] for row in rows),
    }


if __name__ == "__main__":
    main(tyro.cli(Options))
