"""Weights as safetensors, checked against the spec when they are read."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from attnlab.errors import RunError
from attnlab.model import Model
from attnlab.models import Classifier, Seq2Seq, build_model
from attnlab.problems.addition import Addition
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.runs.folder import Run, create_run
from attnlab.spec import PatchSeq2SeqModel, Seq2SeqModel, Spec, TokensModel
from attnlab.storage import write_bytes

M = TypeVar("M", bound=Model)

START = "start.safetensors"
"""Where a run keeps the weights that it begins with, if they are not fresh."""


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write ``weights``, the state of a model; the same weights give the same bytes."""
    write_bytes(path, _as_bytes(weights))


def _as_bytes(weights: dict[str, Tensor]) -> bytes:
    return save({name: weights[name].contiguous() for name in sorted(weights)})


def weights_fingerprint(weights: dict[str, Tensor]) -> str:
    """SHA-256 of the file that ``save_weights`` makes."""
    return hashlib.sha256(_as_bytes(weights)).hexdigest()


def create_run_from(path: Path, spec: Spec, weights: dict[str, Tensor]) -> Run:
    """A new run whose training begins with ``weights``, which ``spec.start`` names."""
    if spec.start != weights_fingerprint(weights):
        raise RunError("the spec names other weights to start with than those that are given")
    run = create_run(path, spec)
    save_weights(run.file(START), weights)
    return run


def load_start(run: Run) -> dict[str, Tensor] | None:
    """The weights that training begins with, if the spec names any."""
    wanted = run.spec().start
    if not wanted:
        return None
    weights = read_tensors(run.file(START))
    if weights_fingerprint(weights) != wanted:
        raise RunError(f"run {run.path} is damaged: {START} holds other weights than the spec names")
    return weights


def load_addition(run: Run, which: str = "best") -> tuple[Addition, Seq2Seq]:
    """The task and the trained model of a run that adds, ready to answer."""
    spec = run.spec()
    if not isinstance(spec.task, Addition) or not isinstance(spec.model, Seq2SeqModel):
        raise other_task(run, Addition.kind)
    model = _with_weights(run, which, partial(build_model, spec.model))
    return spec.task, model


def load_digits(run: Run, which: str = "best") -> tuple[Digits, Model]:
    """The task and the trained model of a run that reads digits, ready to answer."""
    spec = run.spec()
    if not isinstance(spec.task, Digits):
        raise other_task(run, Digits.kind)
    return spec.task, load_model(run, which)


def load_sorting(run: Run, which: str = "best") -> tuple[Sorting, Classifier]:
    """The task and the trained model of a run that tells sorted lists, ready to answer."""
    spec = run.spec()
    task, reader = spec.task, spec.model
    if not isinstance(task, Sorting) or not isinstance(reader, TokensModel):
        raise other_task(run, Sorting.kind)
    return task, _with_weights(run, which, lambda **size: build_model(reader, **size))


def load_grids(run: Run, which: str = "best") -> tuple[Grids, Seq2Seq]:
    """The task and the trained model of a run that reads grids of digits, ready to answer."""
    spec = run.spec()
    task, reader = spec.task, spec.model
    if not isinstance(task, Grids) or not isinstance(reader, PatchSeq2SeqModel):
        raise other_task(run, Grids.kind)
    return task, _with_weights(run, which, partial(build_model, reader))


def other_task(run: Run, *wanted: str) -> RunError:
    """What to raise of a run that does none of the ``wanted`` tasks."""
    kinds = " or ".join(map(repr, wanted))
    return RunError(
        f"run {run.name} does the task {run.spec().task.kind!r}; this needs a run that does {kinds}"
    )


def load_model(run: Run, which: str = "best") -> Model:
    """The trained model of any run, ready to answer."""
    return _with_weights(run, which, partial(build_model, run.spec().model))


def _with_weights(run: Run, which: str, build: Callable[..., M]) -> M:
    with torch.random.fork_rng():
        task = run.spec().task
        model = build(vocabulary=task.vocabulary, tokens=task.tokens, image=task.cell_shape)
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
