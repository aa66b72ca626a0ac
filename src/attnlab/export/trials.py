"""What a graph is tried on: inputs of a run's own task, at any batch size and length."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.image_classifier import image_classifier
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.problems.addition import Addition
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.runs import Run, load_addition, load_digits, load_grids, load_model, load_sorting
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
    match run.spec().task:
        case Addition():
            return _addition(run)
        case Digits():
            return _digits(run)
        case Grids():
            return _grids(run)
        case Sorting():
            return _sorting(run)
        case task:
            return _tokens(run, task)


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


def _resized(rows: Int[Tensor, "B L"], length: int) -> Int[Tensor, "B M"]:
    """Rows of another length, cut off or begun again."""
    return rows.repeat(1, -(-length // rows.shape[1]))[:, :length]


def _addition(run: Run) -> Trial:
    task, model = load_addition(run)
    told, said = 2 * task.digits + 1, task.target_length

    def inputs(batch: int, lengths: Lengths) -> Inputs:
        generator = torch.Generator().manual_seed(batch)
        pairs = torch.randint(0, 10**task.digits, (batch, 2), generator=generator)
        source, target = task.examples(pairs).inputs
        return _resized(source, lengths[0]), _resized(target, lengths[1])

    return Trial(
        model,
        ("source", "target"),
        ((0, 1), (0, 1)),
        inputs,
        _allowed(model, inputs, [(told, said), (told, 1), (told - 2, 2), (BEYOND * told, BEYOND * said)]),
        task.start,
        said,
        f"source: the tokens of a sum of {task.digits} digits; target: the start token {task.start} and "
        "the answer's tokens so far; logits: of every next token",
    )


def _digits(run: Run) -> Trial:
    _, model = load_digits(run)
    mean, deviation = image_classifier(run).members[0].scale

    def inputs(batch: int, lengths: Lengths) -> Inputs:
        generator = torch.Generator().manual_seed(batch)
        return ((torch.rand(batch, 28, 28, generator=generator) - mean) / deviation,)

    about = f"images: (pixels of 0 to 1, ink 1, less {mean}) / {deviation}; logits: of the ten digits"
    return Trial(model, ("images",), ((0,),), inputs, ((),), about=about)


def _grids(run: Run) -> Trial:
    task, model = load_grids(run)
    mean, deviation = image_classifier(run).members[0].scale
    rows, columns, length = task.rows, task.columns, task.target_length

    def inputs(batch: int, lengths: Lengths) -> Inputs:
        generator = torch.Generator().manual_seed(batch)
        images = (torch.rand(batch, 28 * rows, 28 * columns, generator=generator) - mean) / deviation
        said = torch.randint(0, 10, (batch, lengths[0] - 1), generator=generator)
        return images, torch.cat((torch.full((batch, 1), task.start), said), dim=1)

    return Trial(
        model,
        ("images", "target"),
        ((0,), (0, 1)),
        inputs,
        tuple((each,) for each in sorted({1, min(2, length), length}, reverse=True)),
        task.start,
        length,
        f"images: (pixels of 0 to 1, ink 1, less {mean}) / {deviation}; target: the start token "
        f"{task.start} and the digits said so far; logits: of every next token",
    )


def _sorting(run: Run) -> Trial:
    task, model = load_sorting(run)
    examples = task.splits(run.spec().seed).valid
    most = examples.inputs[0].shape[1]

    def inputs(batch: int, lengths: Lengths) -> Inputs:
        (length,) = lengths
        if length > most:
            generator = torch.Generator().manual_seed(batch)
            return task.draw(batch, length, task.negatives, generator).inputs[:1]
        rows = examples.inputs[0].repeat(-(-batch // len(examples)), 1)[:batch, :length]
        return (rows,)

    return Trial(
        model,
        ("tokens",),
        ((0, 1),),
        inputs,
        _allowed(
            model, inputs, [(each,) for each in dict.fromkeys((most, min(5, most), 2, BEYOND * most))]
        ),
        about="tokens: numbers, and padding behind them; logits: of unsorted and sorted",
    )


def _tokens(run: Run, task: Task) -> Trial:
    """Any other task whose inputs are tokens: its validation examples."""
    model, examples = load_model(run), task.splits(run.spec().seed).valid
    usual = tuple(each.shape[1] for each in examples.inputs)

    def inputs(batch: int, lengths: Lengths) -> Inputs:
        chosen = examples[torch.arange(batch) % len(examples)].inputs
        return tuple(_resized(each, length) for each, length in zip(chosen, lengths, strict=True))

    shorter = tuple(max(1, length // 2) for length in usual)
    names = ("tokens",) if task.start is None else ("source", "target")
    return Trial(
        model,
        names,
        tuple((0, 1) for _ in names),
        inputs,
        _allowed(model, inputs, list(dict.fromkeys((usual, shorter)))),
        task.start,
        task.target_length if task.start is not None else 0,
        f"tokens of the task {task.kind}; logits: of every class or next token",
    )
