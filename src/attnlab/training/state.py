"""The training state: all that decides how training goes on, in one safetensors file.

Tensors (weights, their average, what the optimisers remember, the generator) are stored as such; the few
numbers beside them as JSON in the file's header, so that both are replaced in one atomic write.
"""

import json
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from attnlab.errors import RunError
from attnlab.runs import Run
from attnlab.spec import spec_hash
from attnlab.storage import write_bytes
from attnlab.training.trainer import Trainer

FILE = "state.safetensors"


def save_state(run: Run, trainer: Trainer) -> None:
    tensors = _prefixed("model", trainer.model.state_dict())
    tensors |= _prefixed("optimiser", trainer.engine.tensors())
    if trainer.average is not None:
        tensors |= _prefixed("average", trainer.average.model.state_dict())
    tensors["generator"] = torch.get_rng_state()
    numbers = {
        "spec": spec_hash(trainer.spec),
        "step": trainer.step,
        "seconds": trainer.seconds,
        "valid_losses": trainer.valid_losses,
        "perfect": trainer.perfect,
        "window": trainer.window,
        "epoch_loss": trainer.epoch_loss,
    }
    content = {name: value.contiguous() for name, value in tensors.items()}
    write_bytes(run.file(FILE), save(content, metadata={"numbers": json.dumps(numbers)}))


def load_state(run: Run, trainer: Trainer) -> None:
    tensors, numbers = _read_state(run)
    if numbers.get("spec") != spec_hash(trainer.spec):
        raise RunError(
            f"run {run.path}: spec.json was changed after training began; start a new run with it"
        )
    try:
        trainer.model.load_state_dict(_under("model", tensors))
        trainer.engine.restore(_under("optimiser", tensors))
        if trainer.average is not None:
            trainer.average.model.load_state_dict(_under("average", tensors))
        torch.set_rng_state(tensors["generator"])
        trainer.step = int(numbers["step"])
        trainer.seconds = float(numbers["seconds"])
        trainer.valid_losses = [float(loss) for loss in numbers["valid_losses"]]
        trainer.perfect = int(numbers.get("perfect", 0))  # which older states lack
        trainer.window = [(float(loss), float(exact)) for loss, exact in numbers["window"]]
        trainer.epoch_loss = float(numbers["epoch_loss"])
    except (RuntimeError, KeyError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"run {run.path}: {FILE} does not fit the run's spec ({reason})") from error


def _read_state(run: Run) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(run.file(FILE), framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads(file.metadata()["numbers"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"run {run.path} is damaged: {FILE} cannot be read ({error})") from error


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
