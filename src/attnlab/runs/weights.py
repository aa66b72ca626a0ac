"""Weights as safetensors, checked against the spec when they are read; snapshots of them on the way."""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from attnlab.devices import find_device, place
from attnlab.errors import RunError
from attnlab.model import Model
from attnlab.models import build_for
from attnlab.runs.folder import RunFolder, create_run
from attnlab.specs import Spec
from attnlab.storage import refusing, write_bytes

START = "start.safetensors"
"""Where a run keeps the weights that it begins with, if they are not fresh."""


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write ``weights``, the state of a model; the same weights give the same bytes."""
    write_bytes(path, _as_bytes(weights))


def _as_bytes(weights: dict[str, Tensor]) -> bytes:
    return save({name: weights[name].cpu().contiguous() for name in sorted(weights)})


def weights_fingerprint(weights: dict[str, Tensor]) -> str:
    """SHA-256 of the file that ``save_weights`` makes."""
    return hashlib.sha256(_as_bytes(weights)).hexdigest()


def create_run_from(path: Path, spec: Spec, weights: dict[str, Tensor]) -> RunFolder:
    """A new run whose training begins with ``weights``, which ``spec.start`` names."""
    if spec.start != weights_fingerprint(weights):
        raise RunError("the spec names other weights to start with than those that are given")
    run = create_run(path, spec)
    save_weights(run.file(START), weights)
    return run


def load_start(run: RunFolder) -> dict[str, Tensor] | None:
    """The weights that training begins with, if the spec names any."""
    wanted = run.spec().start
    if not wanted:
        return None
    weights = read_tensors(run.file(START))
    if weights_fingerprint(weights) != wanted:
        raise RunError(f"run {run.path} is damaged: {START} holds other weights than the spec names")
    return weights


def other_task(run: RunFolder, *wanted: str) -> RunError:
    """What to raise of a run that does none of the ``wanted`` tasks."""
    kinds = " or ".join(map(repr, wanted))
    return RunError(
        f"run {run.name} does the task {run.spec().task.kind!r}; this needs a run that does {kinds}"
    )


def load_model(run: RunFolder, which: str = "best") -> Model:
    """The model with the weights called ``which``, on the run's device."""
    spec, device = run.spec(), find_device(run.device)
    with torch.random.fork_rng():
        model = build_for(spec)
    path = run.file(f"{which}.safetensors")
    weights, wanted = read_tensors(path), model.state_dict()
    for name in sorted(wanted.keys() | weights.keys()):
        want, have = (str(tuple(d[name].shape)) if name in d else "absent" for d in (wanted, weights))
        if want != have:
            raise RunError(
                f"weights in {path} do not fit the run's spec: {name} is {have}, but the spec needs {want}"
            )
    model.load_state_dict(weights)
    return place(model, device).eval()


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load(path.read_bytes())
    except FileNotFoundError as error:
        raise RunError(
            f"run {path.parent} has no {path.name}; if its training was stopped early, resume it"
        ) from error
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"run {path.parent} is damaged: {path.name} cannot be read ({error})") from error


FOLDER = "snapshots"


def snapshot_name(step: int) -> str:
    """The name under which ``load_model`` finds the weights after ``step`` steps."""
    return f"{FOLDER}/step-{step:08}"


def keep_snapshot(run: RunFolder, step: int, weights: dict[str, Tensor]) -> Path:
    path = run.file(f"{snapshot_name(step)}.safetensors")
    with refusing(path):
        path.parent.mkdir(exist_ok=True)
    save_weights(path, weights)
    return path


def snapshot_steps(run: RunFolder) -> list[int]:
    """Steps of which weights are there, in order."""
    found = run.file(FOLDER).glob("step-*.safetensors")
    numbers = (path.stem.removeprefix("step-") for path in found)
    return sorted(int(number) for number in numbers if number.isdecimal())
