"""Snapshots: the weights of a run on its way, one safetensors file a step in ``snapshots/``."""

from pathlib import Path

from torch import Tensor

from attnlab.runs.folder import Run
from attnlab.runs.weights import save_weights
from attnlab.storage import refusing

FOLDER = "snapshots"


def snapshot_name(step: int) -> str:
    """The name under which ``load_model`` finds the weights after ``step`` steps."""
    return f"{FOLDER}/step-{step:08}"


def keep_snapshot(run: Run, step: int, weights: dict[str, Tensor]) -> Path:
    """Write the weights after ``step`` steps, whole or not at all."""
    path = run.file(f"{snapshot_name(step)}.safetensors")
    with refusing(path):
        path.parent.mkdir(exist_ok=True)
    save_weights(path, weights)
    return path


def snapshot_steps(run: Run) -> list[int]:
    """Steps of which weights are there, in order."""
    found = run.file(FOLDER).glob("step-*.safetensors")
    numbers = (path.stem.removeprefix("step-") for path in found)
    return sorted(int(number) for number in numbers if number.isdecimal())
