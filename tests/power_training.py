"""What loses power in tests: a training that is stopped, resumed and analysed, and saved at every step.

    python tests/power_training.py FOLDER KIND IMAGES

It leaves a mark behind each promise: ``made``, ``saved``, ``kept``, ``done``.
"""

import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.runs import RunFolder, create_run, find_damage, load_model
from attnlab.specs import Muon, Spec
from attnlab.training import train_run
from attnlab.training.records import saved_step
from tiny import tiny
from tiny_digits import squares_spec

KINDS = ("addition", "muon", "explicit")
RATES = {"addition": 0.5, "muon": 2.0, "explicit": 1.0}
"""At which the loss goes up again, so that the best weights are not the last ones."""
STOP = 7
"""Steps after which the training is stopped."""
SOME = {"correct": 3}
"""What its analysis finds."""


def spec_of(kind: str, images: Path) -> Spec:
    match kind:
        case "addition":
            return tiny(threads=1, epochs=3, lr=RATES[kind], snapshots=(0, 9))
        case "muon":
            return tiny(threads=1, epochs=3, lr=RATES[kind], optimiser=Muon())
        case _:
            spec = squares_spec(images, epochs=3, batch=50, lr=RATES[kind])
            return replace(spec, engine="explicit")


def wrong_after_loss(folder: Path, marks: list[str], whole: Path, spec: Spec) -> str:
    """What is lost or wrong in what a loss left of the training; nothing if all is well.

    The run opens, what was promised is there, and it ends with the bytes of ``whole``, an unbroken one.
    """
    run = RunFolder(folder / "runs/run")
    if not run.file("spec.json").exists():
        if "made" in marks:
            return "the run is lost"
        create_run(run.path, spec)
    step = saved_step(run)
    if "saved" in marks and step < STOP:
        return f"the saved state is lost: it stands at step {step}"
    if "kept" in marks and json.loads(run.read("analysis/some.json"))["correct"] != SOME["correct"]:
        return "the analysis is lost"
    if "done" in marks and run.summary() is None:
        return "the end of the training is lost"
    if step and run.file("best.safetensors").exists():
        load_model(run)
    run.metrics()
    train_run(run)
    return differs(run.path, whole) or find_damage(run.path) or ""


def differs(path: Path, whole: Path) -> str:
    """Which file of a finished run is another one than that of ``whole``; nothing if none is."""
    for name in ("best.safetensors", "last.safetensors"):
        if not (path / name).exists():
            return f"{name} is missing"
        if (path / name).read_bytes() != (whole / name).read_bytes():
            return f"{name} is another one"
    return "" if measured(path) == measured(whole) else "metrics.jsonl is another one"


def measured(path: Path) -> list[dict[str, Any]]:
    """The metrics of a run but for the clock."""
    lines = (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def mark(folder: Path, text: str) -> None:
    with suppress(FileNotFoundError):
        (folder / f"mark:{text}").unlink()


def main(folder: Path, kind: str, images: Path) -> None:
    run = create_run(folder / "runs/run", spec_of(kind, images))
    mark(folder, "made")
    left = iter(range(STOP))
    train_run(run, stopping=lambda: next(left, None) is None, checkpoint_seconds=0)
    mark(folder, "saved")
    run.keep_analysis("some", SOME)
    mark(folder, "kept")
    train_run(run, checkpoint_seconds=0)
    mark(folder, "done")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
