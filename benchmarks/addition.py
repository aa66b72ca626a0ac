"""The adder's figures: how many of a million sums each seed gets right, as on several processors.

    python benchmarks/addition.py               # about an hour on two cores
    python benchmarks/addition.py --seeds 1     # a quick look

A processor without a set of instructions adds in another order, so sums are rounded differently, and
after a few hundred steps this is another training of the same seed. ``ATEN_CPU_CAPABILITY`` and
``ONEDNN_MAX_CPU_ISA`` tell torch to compute as an older processor does. Trains ``default`` for each seed
and each of these settings that the machine has, with one thread, verifies every run under the same setting,
and writes ``results/addition/adder.json``. Finished runs are not trained or verified again. Seconds are
those of runs side by side.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
import tyro
from calling import call

from attnlab.analysis.statistics import proportion_interval
from attnlab.presets import preset
from attnlab.runs import describe_environment, load_model, open_run, weights_fingerprint
from attnlab.specs import Spec, to_json
from attnlab.storage import write_json

SETTINGS = {  # from the oldest processor to the newest
    "default": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512"},
}


@dataclass(frozen=True)
class Options:
    """What to measure."""

    seeds: int = 10
    """So many seeds of the default preset, from ``first``."""
    first: int = 0
    """The first seed."""
    workers: int = 2
    """Runs side by side, each with one thread."""
    runs: Path = Path("runs/benchmark-addition")
    """Where the runs are kept."""
    out: Path = Path("results/addition/adder.json")
    """The file to write."""


def main(options: Options) -> None:
    environment = describe_environment().to_json()
    options.runs.mkdir(parents=True, exist_ok=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    seeds = range(options.first, options.first + options.seeds)
    jobs = [(seed, setting) for seed in seeds for setting in known_settings()]
    with ThreadPoolExecutor(options.workers) as pool:
        rows = list(pool.map(lambda job: measure(job[0], job[1], options.runs), jobs))
    perfect = sum(row["correct"] == row["total"] for row in rows)
    result = {
        "what": "adders that are right on every ordered pair 0..999 + 0..999, decoded greedily",
        "command": "python benchmarks/addition.py",
        "environment": environment,
        "spec": to_json(wanted(options.first)),
        "seeds": list(seeds),
        "settings": {name: SETTINGS[name] for name in known_settings()},
        "workers": options.workers,
        "runs": rows,
        "perfect": perfect,
        "total": len(rows),
        "share_perfect_interval": proportion_interval(perfect, len(rows)),
        "different_weights": len({row["weights"] for row in rows}),
        "largest_verify_memory_mib": max(row["verify_memory_mib"] for row in rows),
        "median_training_seconds": {
            name: median(row["training_seconds"] for row in rows if row["setting"] == name)
            for name in known_settings()
        },
    }
    write_json(options.out, result)
    print(json.dumps({key: result[key] for key in ("perfect", "total", "share_perfect_interval")}))


def known_settings() -> list[str]:
    """The settings that this processor can follow."""
    names = list(SETTINGS)
    best = torch.backends.cpu.get_cpu_capability().lower()
    if best not in names:
        sys.exit(f"torch calls this processor {best!r}; the benchmark knows {', '.join(names)}")
    return names[: names.index(best) + 1]


def wanted(seed: int) -> Spec:
    """The default preset with one thread, so that only the processor rounds differently."""
    spec = preset("addition", "default")
    return replace(spec, seed=seed, training=replace(spec.training, threads=1))


def measure(seed: int, setting: str, folder: Path) -> dict[str, Any]:
    """Train and verify one run under a setting, or read what is known of it."""
    run = folder / f"{setting}-s{seed}"
    variables = {**SETTINGS[setting], "OMP_NUM_THREADS": "1"}
    summary = train(run, seed, variables)
    found = open_run(str(run)).analysis("verify") or verify(run, variables)
    row = {
        "seed": seed,
        "setting": setting,
        "correct": found["correct"],
        "total": found["total"],
        "unseen": found["unseen"],
        "wrong": [f"{sum_['a']}+{sum_['b']}" for sum_ in found["wrong"]],
        "training_seconds": summary["seconds"],
        "training_steps": summary["steps"],
        "verify_seconds": found["seconds"],
        "verify_memory_mib": json.loads((run / "verify_memory_mib.json").read_text(encoding="utf-8")),
        "weights": weights_fingerprint(load_model(open_run(str(run))).state_dict()),
    }
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def verify(run: Path, variables: dict[str, str]) -> dict[str, Any]:
    """What ``attnlab verify`` finds; the memory it took goes into the run too."""
    found, memory = call("verify", run, variables=variables)
    write_json(run / "verify_memory_mib.json", memory)
    return found


def train(run: Path, seed: int, variables: dict[str, str]) -> dict[str, Any]:
    """Train a run to its end, or go on with it."""
    if not (run / "spec.json").exists():
        words = ("addition", "--seed", str(seed), "--training.threads", "1", "--out", run)
        return call("train", *words, variables=variables)[0]
    if open_run(str(run)).spec() != wanted(seed):
        sys.exit(f"{run} was trained with another spec; remove it or name another folder with --runs")
    return call("train", "--resume", run, variables=variables)[0]


if __name__ == "__main__":
    main(tyro.cli(Options))
