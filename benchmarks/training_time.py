"""How long a preset takes to train, with nothing beside it.

    python benchmarks/training_time.py                        # three seeds of sorting/default
    python benchmarks/training_time.py --preset global --seeds 1
    python benchmarks/training_time.py --out results/lengths/training.json

Studies train several models side by side, so that their times are those of a busy machine. Here one run
after the other has it for itself, by the command that a user types, which chooses its number of threads.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from calling import call, chosen_threads

from attnlab.runs import describe_environment
from attnlab.storage import write_json


@dataclass(frozen=True)
class Options:
    """What to train."""

    task: str = "sorting"
    preset: str = "default"
    seeds: int = 3
    """Seeds 0, 1, ..., one run each."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    rows = [train(options, seed) for seed in range(options.seeds)]
    for row in rows:
        print(f"seed {row['seed']}: {row['seconds']:.0f} s of training, {row['threads']} threads")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        command = f"python benchmarks/training_time.py --task {options.task} --preset {options.preset}"
        origin = {"command": command, "environment": describe_environment().to_json()}
        write_json(options.out, {**origin, "task": options.task, "preset": options.preset, "rows": rows})


def train(options: Options, seed: int) -> dict[str, Any]:
    """Seconds of one run, and how good it was."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        summary, _ = call(
            "train", options.task, "--preset", options.preset, "--seed", str(seed), "--out", run
        )
        told = {key: value for key, value in summary.items() if key != "run"}  # a folder that is gone
        return {"seed": seed, "threads": chosen_threads(run), **told}


if __name__ == "__main__":
    main(tyro.cli(Options))
