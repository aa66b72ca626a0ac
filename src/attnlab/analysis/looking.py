"""Examples of a run, and where every head looks on them."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from attnlab.analysis.ablation.masks import check_heads
from attnlab.analysis.digits import find_image
from attnlab.analysis.evaluation import Split
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.patterns import (
    AttentionPatterns,
    Looked,
    look_at_grid,
    look_at_list,
    look_at_sum,
    patch_names,
)
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError
from attnlab.models import attentions
from attnlab.models.images import patch_grid
from attnlab.runs import Run, load_addition, load_digits, load_grids, load_sorting
from attnlab.spec import PAD, AdditionTask, DigitsTask, GridsTask, SortingTask
from attnlab.taps import record
from attnlab.tasks import Digits, Examples, Splits

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
        case AdditionTask():
            task, adder = load_addition(run)
            _check(adder, head)
            pairs = dict(zip(("train", "valid", "test"), task.split_pairs(spec.seed), strict=True))[split]
            chosen = task.parse(example)[None] if example else pairs[:count]
            with one_thread():
                return [look_at_sum(task, adder, pair) for pair in chosen]
        case DigitsTask():
            digits, model = load_digits(run)
            _check(model, head)
            return _look_at_images(digits, model, spec.seed, example, split, count)
        case SortingTask():
            sorting, reader = load_sorting(run)
            _check(reader, head)
            lists: Examples = getattr(sorting.splits(spec.seed), split)
            rows = [sorting.parse(example)] if example else lists.inputs[0][:count]
            return [look_at_list(sorting, reader, row[row != PAD]) for row in rows]
        case GridsTask():
            grids, decoder = load_grids(run)
            _check(decoder, head)
            name, every, start = _found(grids.splits(spec.seed), example, split)
            return [
                look_at_grid(grids, decoder, f"{name}:{place}", every[slice(place, place + 1)])
                for place in range(start, min(len(every), start + (1 if example else count)))
            ]


def _check(model: nn.Module, head: str) -> None:
    require_attention(model)
    check_heads(model, [head] if head else [])


@torch.no_grad()
def _look_at_images(
    task: Digits, model: nn.Module, seed: int, example: str, split: Split, count: int
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
