"""Weights as safetensors, checked against the spec when they are read."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from attnlab.errors import RunError
from attnlab.models import Seq2Seq, build_model
from attnlab.runs.folder import Run
from attnlab.spec import AdditionTask, DigitsTask, Seq2SeqModel
from attnlab.storage import write_bytes
from attnlab.tasks import Addition, Digits, build_task

M = TypeVar("M", bound=nn.Module)


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write ``weights``, the state of a model; the same weights give the same bytes."""
    write_bytes(path, save({name: weights[name].contiguous() for name in sorted(weights)}))


def load_addition(run: Run, which: str = "best") -> tuple[Addition, Seq2Seq]:
    """The task and the trained model of a run that adds, ready to answer."""
    spec = run.spec()
    if not isinstance(spec.task, AdditionTask) or not isinstance(spec.model, Seq2SeqModel):
        raise RunError(
            f"run {run.name} does the task {spec.task.kind!r}; this needs a run that does 'addition'"
        )
    model = _with_weights(run, which, partial(build_model, spec.model))
    return build_task(spec.task), model


def load_digits(run: Run, which: str = "best") -> tuple[Digits, nn.Module]:
    """The task and the trained model of a run that reads digits, ready to answer."""
    spec = run.spec()
    if not isinstance(spec.task, DigitsTask):
        raise RunError(
            f"run {run.name} does the task {spec.task.kind!r}; this needs a run that does 'digits'"
        )
    return build_task(spec.task), _with_weights(run, which, partial(build_model, spec.model))


def _with_weights(run: Run, which: str, build: Callable[..., M]) -> M:
    with torch.random.fork_rng():
        model = build(vocabulary=build_task(run.spec().task).vocabulary)
    path = run.file(f"{which}.safetensors")
    weights = read_tensors(path)
    _check_fit(path, model.state_dict(), weights)
    model.load_state_dict(weights)
    return model.eval()


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file."""
    try:
        return load(path.read_bytes())
    except FileNotFoundError as error:
        raise RunError(
            f"run {path.parent} has no {path.name}; if its training was stopped early, "
            f"go on with 'attnlab train --resume {quote(str(path.parent))}'"
        ) from error
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"run {path.parent} is damaged: {path.name} cannot be read ({error})") from error


def _check_fit(path: Path, wanted: dict[str, Tensor], found: dict[str, Tensor]) -> None:
    """Refuse weights of another model."""
    for name in sorted(wanted.keys() | found.keys()):
        want, have = (str(tuple(d[name].shape)) if name in d else "absent" for d in (wanted, found))
        if want != have:
            raise RunError(
                f"weights in {path} do not fit the run's spec: {name} is {have}, but the spec needs {want}"
            )
