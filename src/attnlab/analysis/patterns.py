"""Where every head looks: the attention patterns of single sums, lists and grids of digits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.ablate.masks import check_heads
from attnlab.analysis.answers import answer, fed_inputs
from attnlab.analysis.digits import find_image
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError
from attnlab.examples import Examples, Splits, one_example
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.models.images import patch_grid
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.runs import Run, load_model
from attnlab.spec import Split, Task
from attnlab.taps import record

MOST = 64
"""Examples that one figure can show."""


@dataclass(frozen=True)
class AttentionPatterns:
    """Patterns (H, T, S) of one attention, with a sign for each query and each key."""

    attention: str
    pattern: Float[Tensor, "H T S"]
    queries: list[str]
    keys: list[str]


@dataclass(frozen=True)
class Looked:
    """One example, what the model answers to it, and where its heads look meanwhile."""

    example: str
    answer: str
    patterns: list[AttentionPatterns]
    image: Float[Tensor, "28 28"] | None = None

    def of(self, head: str) -> tuple[AttentionPatterns, Float[Tensor, "T S"]]:
        """The attention that holds ``head``, and the head's own pattern."""
        path, _, index = head.rpartition(".")
        (found,) = (each for each in self.patterns if each.attention == path)
        return found, found.pattern[int(index)]


def attention_patterns(task: Task, model: Model, example: Examples) -> list[AttentionPatterns]:
    """The patterns that ``look_at`` finds."""
    return look_at(task, model, example).patterns


@torch.no_grad()
def look_at(task: Task, model: Model, example: Examples) -> Looked:
    """Every attention's patterns while the model answers one example of tokens, without padding.

    A row of a decoder is labelled with the token that goes in at that place; what comes out stands in
    the next row.
    """
    shown, said = task.show(example), answer(task, model, example)
    inputs = fed_inputs(task, example, said)
    with record(model, "*.pattern") as seen:
        model(*inputs)
    labels = [shown.labels, *(task.symbols(fed[0]) for fed in inputs[1:])]
    found = [
        AttentionPatterns(path, seen[f"{path}.pattern"][0], *_sides(path, seen[f"{path}.pattern"], labels))
        for path in attentions(model)
    ]
    return Looked(shown.name, task.answer(said[0]), found)


def _sides(path: str, pattern: Tensor, labels: list[list[str]]) -> tuple[list[str], list[str]]:
    """Signs of queries and keys; what the model itself puts in front of its input has a word."""
    given, said = labels[0], labels[-1]
    queries = given if path.startswith("encoder") else said
    keys = said if path.startswith("decoder") and path.endswith("self") else given
    front = ["cls"] * (pattern.shape[-1] - len(keys))
    return (front + queries if queries is keys else queries), front + keys


@torch.no_grad()
def look_at_grid(task: Grids, model: Model, name: str, example: Examples) -> Looked:
    """Every attention's patterns while the model reads one grid greedily.

    A row of a decoder is labelled with the token that goes in at that place, a key of its cross attention
    with the patch, or with the cell where the decoder sees cells.
    """
    (image, _), cells = example.inputs, task.places()
    emitted = model.answer(image, start=task.start, length=task.target_length)
    target = torch.cat((torch.full_like(emitted[:, :1], task.start), emitted[:, :-1]), dim=1)
    with record(model, "*.pattern") as seen:
        model(image, target)
    said = task.symbols(target[0])
    found = []
    for path in attentions(model):
        pattern = seen[f"{path}.pattern"][0]
        count = pattern.shape[-1]
        given = cells if count == len(cells) else patch_names(image.shape[1:], count)
        queries = given if path.startswith("encoder") else said
        keys = said if path.startswith("decoder") and path.endswith("self") else given
        found.append(AttentionPatterns(path, pattern, queries, keys))
    return Looked(name, task.answer(emitted[0]), found)


def patch_names(image: Sequence[int], tokens: int) -> list[str]:
    """``row,column`` of each patch of an image."""
    rows, columns = patch_grid(image, tokens)
    return [f"{row},{column}" for row in range(rows) for column in range(columns)]


def run_patterns(
    run: Run, *, example: str = "", head: str = "", split: Split = "valid", count: int = 1
) -> list[Looked]:
    """Patterns of the example that is named, or of the first ``count`` of a split."""
    if not 1 <= count <= MOST:
        raise InputError(f"--examples is {count}; a figure shows from 1 to {MOST}")
    spec = run.spec()
    match spec.task:
        case Digits():
            digits, model = spec.task, load_model(run)
            _check(model, head)
            return _look_at_images(digits, model, spec.seed, example, split, count)
        case Grids():
            grids, decoder = spec.task, load_model(run)
            _check(decoder, head)
            name, every, start = _found(grids.splits(spec.seed), example, split)
            return [
                look_at_grid(grids, decoder, f"{name}:{place}", every[slice(place, place + 1)])
                for place in range(start, min(len(every), start + (1 if example else count)))
            ]
        case task:
            model = load_model(run)
            _check(model, head)
            if example:
                chosen = [task.parse(example)]
            else:
                some = task.splits(spec.seed)[split]
                chosen = [
                    one_example(some, number, task.padding) for number in range(min(count, len(some)))
                ]
            with one_thread():
                return [look_at(task, model, each) for each in chosen]


def _check(model: Model, head: str) -> None:
    require_attention(model)
    check_heads(model, [head] if head else [])


@torch.no_grad()
def _look_at_images(
    task: Digits, model: Model, seed: int, example: str, split: Split, count: int
) -> list[Looked]:
    name, examples, start = _found(task.splits(seed), example, split)
    part = examples[slice(start, start + (1 if example else count))]
    with record(model, "*.pattern") as seen:
        said = model(*part.inputs).argmax(dim=1).tolist()

    image = part.inputs[0].shape[1:]

    def patterns(place: int) -> list[AttentionPatterns]:
        found = {path: seen[f"{path}.pattern"][place] for path in attentions(model)}
        return [
            AttentionPatterns(path, each, _tokens(each.shape[1], image), _tokens(each.shape[2], image))
            for path, each in found.items()
        ]

    return [
        Looked(f"{name}:{start + place}", str(said[place]), patterns(place), part.inputs[0][place])
        for place in range(len(part))
    ]


def _found(splits: Splits, example: str, split: Split) -> tuple[str, Examples, int]:
    """The split that ``test:7`` names and the place in it, or the first of ``split``."""
    every = {name: getattr(splits, name) for name in ("train", "valid", "test")}
    return find_image(example, every) if example else (split, every[split], 0)


def _tokens(count: int, image: Sequence[int]) -> list[str]:
    """``row,column`` of each patch of an image, and a word for what stands in front of them."""
    return ["cls"] * (count - math.prod(patch_grid(image, count))) + patch_names(image, count)
