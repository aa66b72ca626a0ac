"""Examples of a run, and where every head looks on them."""

import math
from collections.abc import Sequence

import torch

from attnlab.analysis.ablation.masks import check_heads
from attnlab.analysis.digits import find_image
from attnlab.analysis.evaluation import Split
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.patterns import (
    AttentionPatterns,
    Looked,
    look_at,
    look_at_grid,
    patch_names,
)
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError
from attnlab.examples import Examples, Splits, one_example
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.models.images import patch_grid
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.runs import Run, load_digits, load_grids, load_model
from attnlab.taps import record

MOST = 64
"""Examples that one figure can show."""


def run_patterns(
    run: Run, *, example: str = "", head: str = "", split: Split = "valid", count: int = 1
) -> list[Looked]:
    """Patterns of the example that is named, or of the first ``count`` of a split."""
    if not 1 <= count <= MOST:
        raise InputError(f"--examples is {count}; a figure shows from 1 to {MOST}")
    spec = run.spec()
    match spec.task:
        case Digits():
            digits, model = load_digits(run)
            _check(model, head)
            return _look_at_images(digits, model, spec.seed, example, split, count)
        case Grids():
            grids, decoder = load_grids(run)
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
