"""How well a model reads grids of digits: as wholes, cell by cell and digit by digit.

A grid is right if every digit that greedy decoding says is right. With p the share of digits right and C
cells, p^C of the grids would be right if mistakes fell on them independently.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.evaluate import share
from attnlab.analysis.parallel import in_order
from attnlab.examples import Examples
from attnlab.images import ImageTask
from attnlab.model import Model
from attnlab.spec import Split
from attnlab.training.measuring import measure

BATCH = 250


def evaluate_grids(task: ImageTask, model: Model, *, seed: int, split: Split = "test") -> dict[str, Any]:
    """Measure ``model`` on a split, by greedy decoding and by teacher forcing."""
    examples: Examples = task.splits(seed)[split]
    return {
        "split": split,
        **count_grids(task, examples.targets, read_grids(task, model, examples)),
        "teacher_forced": forced_grids(task, model, seed=seed, split=split),
    }


def forced_grids(task: ImageTask, model: Model, *, seed: int, split: Split) -> dict[str, float]:
    """The same measures where the true digits are fed."""
    forced = measure(model, task.splits(seed)[split], batch=BATCH)
    return {
        "exact_match": forced.exact_match,
        "token_accuracy": forced.token_accuracy,
        "loss": forced.loss,
    }


def count_grids(task: ImageTask, given: Int[Tensor, "N C"], said: Int[Tensor, "N C"]) -> dict[str, Any]:
    """How many grids and digits are right, cell by cell and digit by digit."""
    right = said == given
    every = right.double().mean().item()
    return {
        **share("exact_match", right.all(dim=1)),
        "digit_accuracy": every,
        "if_independent": every**task.target_length,
        "by_cell": [
            {"cell": name, **share("accuracy", right[:, place])} for place, name in enumerate(task.places())
        ],
        "by_class": [
            {"class": number, **share("accuracy", right[given == number]), "name": name}
            for number, name in enumerate(task.classes)
            if (given == number).any()
        ],
        "confusion": confusions(given, said, len(task.classes)),
        "rows": task.rows,
        "columns": task.columns,
        "data": task.data.source,
        "sample": task.data.sample,
    }


def confusions(given: Int[Tensor, "N C"], said: Int[Tensor, "N C"], classes: int) -> list[list[int]]:
    """How often each class is taken for each; what is no class counts for none."""
    known = said < classes
    counts = torch.zeros(classes, classes, dtype=torch.long)
    counts.index_put_((given[known], said[known]), torch.ones_like(given[known]), accumulate=True)
    return counts.tolist()


def read_grids(task: ImageTask, model: Model, examples: Examples) -> Int[Tensor, "N C"]:
    """The digits that greedy decoding says of each grid."""

    def answer(part: Examples) -> Tensor:
        return model.answer(part.inputs[0], start=task.start, length=task.target_length)

    return torch.cat(list(in_order(answer, _parts(examples))))


def _parts(examples: Examples) -> Iterator[Examples]:
    for start in range(0, len(examples), BATCH):
        yield examples[slice(start, start + BATCH)]
