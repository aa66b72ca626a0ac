"""Every preset on a processor without AVX-512 and bfloat16: time and accuracy beside those of this one.

    python benchmarks/presets.py                              # hours; goes on where it was stopped
    python benchmarks/presets.py --presets sorting/default    # one of them
    python benchmarks/presets.py --presets grids/default --epochs 2

Another processor is emulated: its libraries are told to do without the instructions that it has not, and
products are in float32. Each preset is trained to its end with one seed and one thread, evaluated once on
its test examples, and told with the seconds of processor time that its training took. Rows are kept in
``results/presets/processors.json`` as they come; what is there is not measured again.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from attnlab.presets import preset
from attnlab.registry import find_task, task_names
from attnlab.runs import RunFolder, describe_environment, open_run
from attnlab.specs import Spec, spec_hash, to_json, with_settings
from attnlab.storage import write_json

PROCESSORS = {
    "native": {},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}
NAMES = tuple(f"{task}/{name}" for task in task_names() for name in find_task(task).presets())
TRAIN = """
import sys, time
from pathlib import Path
from attnlab.analysis.evaluate import evaluate_run
from attnlab.runs import RunFolder, create_run, open_run
from attnlab.specs import Spec, from_json
from attnlab.storage import write_json
from attnlab.training import train_run
import json
path, spec = Path(sys.argv[1]), from_json(Spec, json.loads(sys.argv[2]))
run = open_run(str(path)) if (path / "spec.json").exists() else create_run(path, spec)
began, file = time.process_time(), path / "processor_seconds.json"
before = json.loads(file.read_text()) if file.exists() else 0.0
train_run(run, checkpoint_seconds=60)
write_json(file, before + time.process_time() - began)
evaluate_run(run)
"""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    presets: tuple[str, ...] = NAMES
    """As TASK/PRESET."""
    processors: tuple[str, ...] = ("avx2",)
    """``avx2``, and ``native`` for this machine as it is."""
    seed: int = 0
    """The seed of every run."""
    epochs: int = 0
    """The whole schedule in so few epochs; 0: as many as the preset has."""
    runs: Path = Path("runs/benchmark-presets")
    """Where the runs are kept."""
    out: Path = Path("results/presets/processors.json")
    """The file to write."""


def main(options: Options) -> None:
    options.runs.mkdir(parents=True, exist_ok=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in options.presets:
        for processor in options.processors:
            rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
            spec = spec_of(name, processor, options)
            if not any((row["spec"], row["processor"]) == (spec_hash(spec), processor) for row in rows):
                rows.append(measure(name, processor, options))
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
                write_json(options.out, {"command": "python benchmarks/presets.py", "rows": rows})


def spec_of(name: str, processor: str, options: Options) -> Spec:
    """The preset with one thread and, on another processor, with products in float32."""
    settings: dict[str, Any] = {"seed": options.seed, "training.threads": 1}
    if processor != "native":
        settings["training.precision"] = "float32"
    if options.epochs:
        settings["training.epochs"] = options.epochs
    return with_settings(preset(*name.split("/")), settings)


def measure(name: str, processor: str, options: Options) -> dict[str, Any]:
    """Train one preset to its end, or go on with it, and evaluate it."""
    spec = spec_of(name, processor, options)
    path = options.runs / f"{name.replace('/', '-')}-{processor}-e{spec.training.epochs}-s{options.seed}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **PROCESSORS[processor]}
    command = [sys.executable, "-c", TRAIN, str(path), json.dumps(to_json(spec))]
    if subprocess.run(command, env=environment, check=False).returncode:
        sys.exit(f"{path} was stopped; the same command goes on")
    return {
        "preset": name,
        "processor": processor,
        "spec": spec_hash(spec),
        **describe(open_run(str(path))),
    }


def describe(run: RunFolder) -> dict[str, Any]:
    """What is told of a finished run."""
    summary, found = run.summary(), run.analysis("evaluate-test")
    assert summary is not None
    assert found is not None
    return {
        "seed": run.spec().seed,
        "epochs": summary["epochs"],
        "processor_seconds": json.loads(run.file("processor_seconds.json").read_text(encoding="utf-8")),
        "exact_match": found["exact_match"],
        "exact_match_interval": found["exact_match_interval"],
        "examples": found["examples"],
        "precision": run.environment().precision or run.spec().training.precision,
        "environment": {**describe_environment().to_json(), **run.environment().to_json()},
    }


if __name__ == "__main__":
    main(tyro.cli(Options))
