"""Weights as safetensors, checked against the spec when they are read; snapshots of them on the way."""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from attnlab.devices import find_device, place
from attnlab.errors import RunError, brief
from attnlab.model import Model
from attnlab.models import build_for
from attnlab.runs.creating import create_run
from attnlab.runs.files import MOST_WEIGHTS
from attnlab.runs.folder import RunFolder
from attnlab.specs import Spec

START = "start.safetensors"
"""Where a run keeps the weights that it begins with, if they are not fresh."""


def save_weights(run: RunFolder, which: str, weights: dict[str, Tensor]) -> None:
    """Write ``weights``, the state of a model, where ``load_model`` finds them as ``which``."""
    run.write({weights_file(which): weights_bytes(weights)})


def weights_file(which: str) -> str:
    return f"{which}.safetensors"


def weights_bytes(weights: dict[str, Tensor]) -> bytes:
    """The file of ``weights``; the same ones give the same bytes."""
    return save({name: weights[name].cpu().contiguous() for name in sorted(weights)})


def weights_fingerprint(weights: dict[str, Tensor]) -> str:
    """SHA-256 of their file."""
    return hashlib.sha256(weights_bytes(weights)).hexdigest()


def create_run_from(path: Path, spec: Spec, weights: dict[str, Tensor]) -> RunFolder:
    """A new run whose training begins with ``weights``, which ``spec.start`` names."""
    if spec.start != weights_fingerprint(weights):
        raise RunError("the spec names other weights to start with than those that are given")
    return create_run(path, spec, {START: weights_bytes(weights)})


def load_start(run: RunFolder) -> dict[str, Tensor] | None:
    """The weights that training begins with, if the spec names any."""
    wanted = run.spec().start
    if not wanted:
        return None
    weights = read_tensors(run, START)
    if weights_fingerprint(weights) != wanted:
        raise RunError(f"run {run.path} is damaged: {START} holds other weights than the spec names")
    return weights


def other_task(run: RunFolder, *wanted: str) -> RunError:
    """What to raise of a run that does none of the ``wanted`` tasks."""
    kinds = " or ".join(map(repr, wanted))
    return RunError(
        f"run {run.name} does the task {brief(run.spec().task.kind)}; this needs a run that does {kinds}"
    )


def load_model(run: RunFolder, which: str = "best") -> Model:
    """The model with the weights called ``which``, on the run's device."""
    spec, device = run.spec(), find_device(run.device)
    with torch.random.fork_rng():
        model = build_for(spec)
    wanted = model.state_dict()
    weights = read_tensors(run, weights_file(which))
    for name in sorted(wanted.keys() | weights.keys()):
        want, have = (str(tuple(d[name].shape)) if name in d else "absent" for d in (wanted, weights))
        if want != have:
            raise RunError(
                f"weights in {run.file(weights_file(which))} do not fit the run's spec: {name} is {have}, "
                f"but the spec needs {want}"
            )
    model.load_state_dict(weights)
    if which == "best":
        model.temperature = run.temperature
    return place(model, device).eval()


def read_tensors(run: RunFolder, name: str) -> dict[str, Tensor]:
    try:
        return load(run.read(name, MOST_WEIGHTS))
    except FileNotFoundError as error:
        raise RunError(
            f"run {run.path} has no {name}; if its training was stopped early, resume it"
        ) from error
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"run {run.path} is damaged: {name} cannot be read ({error})") from error


FOLDER = "snapshots"


def snapshot_name(step: int) -> str:
    """The name under which ``load_model`` finds the weights after ``step`` steps."""
    return f"{FOLDER}/step-{step:08}"


def keep_snapshot(run: RunFolder, step: int, weights: dict[str, Tensor]) -> None:
    save_weights(run, snapshot_name(step), weights)


def snapshot_steps(run: RunFolder) -> list[int]:
    """Steps of which weights are there, in order."""
    found = run.file(FOLDER).glob("step-*.safetensors")
    numbers = (path.stem.removeprefix("step-") for path in found)
    return sorted(int(number) for number in numbers if number.isascii() and number.isdecimal())
