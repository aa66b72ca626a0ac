"""What a graph is tried on: validation examples of a run's own task, at any batch size and length."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.image_classifier import image_classifier
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.runs import Run, load_model
from attnlab.spec import Task

Inputs = tuple[Tensor, ...]
Lengths = tuple[int, ...]
BEYOND, FURTHEST = 4, 512
"""How many times the usual length is tried too, and up to which length: memory grows with its square."""


@dataclass(frozen=True)
class Trial:
    """``inputs(batch, lengths)`` are examples; ``lengths`` has a number for each input of tokens.

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
    about: str = ""


def run_trial(run: Run) -> Trial:
    """The model of ``run``, with inputs of its task."""
    task, model = run.spec().task, load_model(run)
    examples = task.splits(run.spec().seed).valid
    usual = tuple(part.shape[1] for part in examples[slice(0, 1)].inputs)[int(task.images) :]

    def inputs(batch: int, lengths: Lengths) -> Inputs:
        parts = examples[torch.arange(batch) % len(examples)].inputs
        images = parts[: int(task.images)]
        resized = zip(parts[len(images) :], lengths, strict=True)
        return (*images, *(_resized(each, length, task.padding) for each, length in resized))

    first = "images" if task.images else "tokens" if task.start is None else "source"
    names = (first,) if task.start is None else (first, "target")
    return Trial(
        model,
        names,
        tuple((0,) if name == "images" else (0, 1) for name in names),
        inputs,
        _allowed(model, inputs, _lengths(task, usual)),
        task.start,
        0 if task.start is None else task.target_length,
        f"{first}: {_meaning(run, task)}; {_said(task)}",
    )


def _lengths(task: Task, usual: Lengths) -> list[Lengths]:
    """The usual lengths, shorter ones, and much longer ones where inputs are tokens."""
    if task.images:
        return list(dict.fromkeys((usual, *(tuple(min(most, each) for each in usual) for most in (2, 1)))))
    beyond = tuple(BEYOND * each for each in usual)
    if task.start is None:
        (most,) = usual
        return list(dict.fromkeys((usual, (min(5, most),), (min(2, most),), beyond)))
    told, said = usual
    return list(dict.fromkeys((usual, (told, 1), (max(1, told - 2), min(2, said)), beyond)))


def _meaning(run: Run, task: Task) -> str:
    """What the numbers of an input stand for."""
    if not task.images:
        return task.input_words()
    mean, deviation = image_classifier(run).members[0].scale
    return f"(pixels of 0 to 1, ink 1, less {mean}) / {deviation}"


def _said(task: Task) -> str:
    if task.start is None:
        names = [task.answer(torch.tensor(each)) for each in range(task.vocabulary)]
        return f"logits: of {', '.join(names[:-1])} and {names[-1]}"
    return (
        f"target: the start token {task.start} and the answer's tokens so far; logits: of every next token"
    )


def _allowed(
    model: Model, inputs: Callable[[int, Lengths], Inputs], lengths: Sequence[Lengths]
) -> tuple[Lengths, ...]:
    """The usual lengths, which come first, and those of the others that the model takes."""
    return tuple(
        each
        for place, each in enumerate(lengths)
        if place == 0 or (max(each) <= max(FURTHEST, *lengths[0]) and _taken(model, inputs(1, each)))
    )


@torch.inference_mode()
def _taken(model: Model, inputs: Inputs) -> bool:
    """Whether the model has places for so many tokens."""
    try:
        model(*inputs)
    except LabError:
        return False
    return True


def _resized(rows: Int[Tensor, "B L"], length: int, padding: int | None) -> Int[Tensor, "B M"]:
    """Rows of another length, cut off or begun again behind what is no padding."""
    if length <= rows.shape[1]:
        return rows[:, :length]
    filled = torch.full((len(rows), 1), rows.shape[1]) if padding is None else _filled(rows, padding)
    return rows.take_along_dim(torch.arange(length) % filled, dim=1)


def _filled(rows: Int[Tensor, "B L"], padding: int) -> Int[Tensor, "B 1"]:
    return (rows != padding).sum(dim=1, keepdim=True).clamp(min=1)
