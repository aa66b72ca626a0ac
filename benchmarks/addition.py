"""The adder's figures: how many of a million sums each seed gets right, and how long that took.

    python benchmarks/addition.py                 # about 20 minutes on two cores
    python benchmarks/addition.py --seeds 1       # a quick look, labelled anecdotal

Trains ``default`` for each seed and ``reference`` once, one after the other and with nothing beside them,
verifies every default run, and writes ``results/addition/adder.json``. Runs that are finished are not
trained again, so an interrupted benchmark goes on where it stopped.
"""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import tyro
from calling import call

from attnlab.analysis import proportion_interval
from attnlab.presets import preset
from attnlab.runs import describe_environment, open_run
from attnlab.spec import to_json
from attnlab.storage import write_json


@dataclass(frozen=True)
class Options:
    """What to measure."""

    seeds: int = 5
    """So many seeds of the default preset, from 0."""
    runs: Path = Path("runs/benchmark-addition")
    """Where the runs are kept."""
    out: Path = Path("results/addition/adder.json")
    """The file to write."""


def main(options: Options) -> None:
    environment = describe_environment()
    options.runs.mkdir(parents=True, exist_ok=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    reference = train(options.runs / "reference-s0", "reference", 0)
    judged = call("evaluate", options.runs / "reference-s0")[0]
    seeds = []
    for seed in range(options.seeds):
        run = options.runs / f"default-s{seed}"
        summary = train(run, "default", seed)
        seeds.append(describe(seed, summary, *verify(run)))
        print(json.dumps(seeds[-1]), file=sys.stderr)
    seconds = median(row["training_seconds"] for row in seeds)
    result = {
        "what": "greedy decoding of every ordered pair 0..999 + 0..999",
        "command": "python benchmarks/addition.py",
        "environment": environment,
        "anecdotal": len(seeds) == 1,
        "default": {
            "spec": to_json(preset("addition", "default")),
            "seeds": seeds,
            "seeds_with_all_correct": sum(row["correct"] == row["total"] for row in seeds),
            "median_training_seconds": seconds,
            "slowest_verify_seconds": max(row["verify_seconds"] for row in seeds),
            "largest_verify_memory_mib": max(row["verify_memory_mib"] for row in seeds),
        },
        "reference": {
            "spec": to_json(preset("addition", "reference")),
            "seed": 0,
            "training_seconds": reference["seconds"],
            "exact_match": judged["exact_match"],
            "exact_match_interval": judged["exact_match_interval"],
            "examples": judged["examples"],
        },
        "reference_time_over_default_time": reference["seconds"] / seconds,
    }
    write_json(options.out, result)
    print(json.dumps({k: v for k, v in result.items() if k not in ("default", "reference")}, indent=2))


def describe(seed: int, summary: dict[str, Any], found: dict[str, Any], memory: float) -> dict[str, Any]:
    """One row of the result."""
    unseen = found["unseen"]
    return {
        "seed": seed,
        "correct": found["correct"],
        "total": found["total"],
        "unseen": {
            **unseen,
            "accuracy": unseen["correct"] / unseen["total"],
            "interval": proportion_interval(unseen["correct"], unseen["total"]),
        },
        "training_seconds": summary["seconds"],
        "training_steps": summary["steps"],
        "verify_seconds": found["seconds"],
        "verify_memory_mib": memory,
    }


def train(run: Path, name: str, seed: int) -> dict[str, Any]:
    """Train a run to its end, or go on with it."""
    if (run / "spec.json").exists():
        if open_run(str(run)).spec() != replace(preset("addition", name), seed=seed):
            sys.exit(f"{run} was trained with another spec; remove it or name another folder with --runs")
        return call("train", "--resume", run)[0]
    return call("train", "addition", "--preset", name, "--seed", str(seed), "--out", run)[0]


def verify(run: Path) -> tuple[dict[str, Any], float]:
    """What ``attnlab verify`` found, and the memory it took in MiB."""
    return call("verify", run)


if __name__ == "__main__":
    main(tyro.cli(Options))
