"""How soon presets that read digits reach what the reference reports reached.

    python benchmarks/reading_time.py                       # digits: one and three epochs, three seeds
    python benchmarks/reading_time.py --task grids --epochs 2
    python benchmarks/reading_time.py --out results/digits/time.json

Our preset is trained wholly, its schedule squeezed into so few epochs, by the command that a user types.
The time of the reference's preset is that of its steps, some of which are measured before and after each of
our trainings, times their number. Both choose their threads by measuring. Test images are looked at
once, after a training's end.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

import torch
import tyro
from calling import call, chosen_threads

from attnlab.presets import preset
from attnlab.runs import describe_environment
from attnlab.storage import write_json
from attnlab.training.threads import choose_threads
from attnlab.training.trainer import Trainer

PRESETS = {"digits": ("vit", "vit-reference", "accuracy"), "grids": ("default", "reference", "exact_match")}


@dataclass(frozen=True)
class Options:
    """What to measure."""

    task: Literal["digits", "grids"] = "digits"
    epochs: tuple[int, ...] = (1, 3)
    """Epochs of our preset, one training each."""
    seeds: int = 3
    """Seeds 0, 1, ..., each with all epochs."""
    steps: int = 20
    """Steps of the reference that are measured at a time."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    ours, theirs, measured = PRESETS[options.task]
    reference = Reference(options.task, theirs)
    seconds = [reference.step_seconds(options.steps)]
    rows = []
    for seed in range(options.seeds):
        for epochs in options.epochs:
            row = train(options.task, ours, epochs, seed, measured)
            seconds.append(reference.step_seconds(options.steps))
            whole = fmean(seconds[-2:]) * reference.steps
            rows.append({**row, "reference_seconds": whole, "ratio": whole / row["seconds"]})
            print(
                f"{epochs} epochs, seed {seed}: {100 * row[measured]:.2f}% of test images after "
                f"{row['seconds']:.0f} s, 1/{whole / row['seconds']:.1f} of {whole:.0f} s",
                flush=True,
            )
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        words = f"--task {options.task} --epochs {' '.join(map(str, options.epochs))}"
        words += f" --seeds {options.seeds} --steps {options.steps}"
        found = {
            "command": f"python benchmarks/reading_time.py {words}",
            "environment": describe_environment().to_json(),
            "task": options.task,
            "preset": ours,
            "reference": {
                "preset": theirs,
                "threads": reference.threads,
                "steps": reference.steps,
                "step_seconds": seconds,
            },
            "measure": measured,
            "rows": rows,
        }
        write_json(options.out, found)


class Reference:
    """The reference's preset, some steps of which are taken now and then."""

    def __init__(self, task: str, name: str) -> None:
        self._spec = preset(task, name)
        self.threads = choose_threads(self._spec)
        self._trainer = Trainer(self._spec)
        self.steps = self._trainer.total_steps

    def step_seconds(self, steps: int) -> float:
        """Median time of a step."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        batch = self._trainer.data.train[slice(0, self._spec.training.batch)]
        taken = []
        for _ in range(steps):
            began = time.perf_counter()
            self._trainer.update(batch)
            taken.append(time.perf_counter() - began)
        torch.set_num_threads(before)
        return median(taken)


def train(task: str, name: str, epochs: int, seed: int, measured: str) -> dict[str, Any]:
    """Seconds of one run, and how good it is on test images."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        words = ("--preset", name, "--training.epochs", str(epochs), "--seed", str(seed))
        summary, _ = call("train", task, *words, "--out", run)
        found, _ = call("evaluate", run)
        return {
            "seed": seed,
            "epochs": epochs,
            "seconds": summary["seconds"],
            "threads": chosen_threads(run),
            "valid": summary["valid"],
            measured: found[measured],
        }


if __name__ == "__main__":
    main(tyro.cli(Options))
