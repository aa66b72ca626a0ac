"""What a graph is made and tried with: a model, and inputs of its task at several sizes."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.runs import RunFolder
from attnlab.specs import Task

Inputs = tuple[Tensor, ...]
Lengths = tuple[int, ...]
BEYOND, FURTHEST = 4, 512
"""How many times the usual length is tried too, and up to which length: memory grows with its square."""


@dataclass(frozen=True)
class Trial:
    """What a graph is tried on: ``inputs(batch, lengths)`` are validation examples of a run's own task;
    ``lengths`` has a number for each input of tokens.

    The first lengths are the usual ones, those of the task. ``free`` says which axes of each input may have
    any size. ``start`` is the token that greedy decoding begins with, None for a classifier, and ``steps``
    the tokens that it says.
    """

    model: Model
    names: tuple[str, ...]
    free: tuple[tuple[int, ...], ...]
    inputs: Callable[[int, Lengths], Inputs]
    lengths: tuple[Lengths, ...]
    start: int | None = None
    steps: int = 0


def run_trial(run: RunFolder) -> Trial:
    """The model of ``run``, with inputs of its task."""
    task, model = run.spec().task, run.on_cpu().model
    examples = task.splits(run.spec().seed).valid
    images = int(task.images)  # how many inputs come before those of tokens
    usual = tuple(part.shape[1] for part in examples[slice(0, 1)].inputs[images:])

    def inputs(batch: int, lengths: Lengths) -> Inputs:
        parts = examples[torch.arange(batch) % len(examples)].inputs
        tokens = zip(parts[images:], lengths, strict=True)
        return (*parts[:images], *(_resized(each, length, task.padding) for each, length in tokens))

    @torch.inference_mode()
    def taken(lengths: Lengths) -> bool:
        """Whether there is memory for so many tokens, and the model has places for them."""
        if max(lengths) > max(FURTHEST, *usual):
            return False
        try:
            model(*inputs(1, lengths))
        except LabError:
            return False
        return True

    first = "images" if images else "tokens" if task.start is None else "source"
    names = (first,) if task.start is None else (first, "target")
    return Trial(
        model,
        names,
        tuple((0,) if name == "images" else (0, 1) for name in names),
        inputs,
        (usual, *filter(taken, _other_lengths(task, usual))),
        task.start,
        0 if task.start is None else task.target_length,
    )


def _resized(rows: Int[Tensor, "B L"], length: int, padding: int | None) -> Int[Tensor, "B M"]:
    """Rows of another length, cut off or begun again behind what is no padding."""
    if length <= rows.shape[1]:
        return rows[:, :length]
    filled = torch.ones_like(rows) if padding is None else rows != padding
    return rows.take_along_dim(torch.arange(length) % filled.sum(dim=1, keepdim=True).clamp(min=1), dim=1)


def _other_lengths(task: Task, usual: Lengths) -> list[Lengths]:
    """Shorter ones than usual, and much longer ones where inputs are tokens."""
    beyond = tuple(BEYOND * each for each in usual)
    if task.images:
        tried = [tuple(min(most, each) for each in usual) for most in (2, 1)]
    elif task.start is None:
        tried = [(min(5, *usual),), (min(2, *usual),), beyond]
    else:
        told, said = usual
        tried = [(told, 1), (max(1, told - 2), min(2, said)), beyond]
    return [each for each in dict.fromkeys(tried) if each != usual]
