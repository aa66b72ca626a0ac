"""Where every head looks while a model answers one example: the attention patterns of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.ablate.baselines import check_heads
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.predict import answer, fed_inputs
from attnlab.analysis.samples import find_image
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.models.images import patch_grid
from attnlab.runs import RunFolder, load_model
from attnlab.sets import Examples, one_example
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
    """One example, what the model answers to it, and where its heads look meanwhile.

    ``image`` is the input, if it is an image of which a model tells the class.
    """

    example: str
    answer: str
    patterns: list[AttentionPatterns]
    image: Float[Tensor, "*C Y X"] | None = None

    def of(self, head: str) -> tuple[AttentionPatterns, Float[Tensor, "T S"]]:
        """The attention that holds ``head``, and the head's own pattern."""
        path, _, index = head.rpartition(".")
        (found,) = (each for each in self.patterns if each.attention == path)
        return found, found.pattern[int(index)]


def run_patterns(
    run: RunFolder, *, example: str = "", head: str = "", split: Split = "valid", count: int = 1
) -> list[Looked]:
    """Patterns of the example that is named, or of the first ``count`` of a split."""
    if not 1 <= count <= MOST:
        raise InputError(f"--examples is {count}; a figure shows from 1 to {MOST}")
    spec, model = run.spec(), load_model(run)
    require_attention(model)
    check_heads(model, [head] if head else [])
    chosen = _chosen(spec.task, spec.seed, example, split, count)
    with one_thread():
        return [look_at(spec.task, model, each, name) for name, each in chosen]


def _chosen(
    task: Task, seed: int, example: str, split: Split, count: int
) -> list[tuple[str | None, Examples]]:
    """Examples by their names; those that are no images name themselves."""
    if example and not task.images:
        return [(None, task.parse(example))]
    splits = task.splits(seed)
    start = 0
    if example:
        (split, start), count = find_image(example, lambda split: len(splits[split])), 1
    some = splits[split]
    numbers = range(start, min(len(some), start + count))
    return [
        (f"{split}:{number}" if task.images else None, one_example(some, number, task.padding))
        for number in numbers
    ]


@torch.no_grad()
def look_at(task: Task, model: Model, example: Examples, name: str | None = None) -> Looked:
    """Every attention's patterns while the model answers one example, without padding.

    A row of a decoder is labelled with the token that goes in at that place; what comes out stands in the
    next row. A token of an input is labelled as the task shows it, a patch of an image with its row and
    column, and a key that the model joins from several patches with the place of the answer it stands for.
    """
    said = answer(task, model, example)
    inputs = fed_inputs(task, example, said)
    with record(model, "*.pattern") as seen:
        model(*inputs)
    image = inputs[0][0] if task.images else None
    shown = None if task.images else task.show(example)
    fed = task.symbols(inputs[1][0]) if len(inputs) > 1 else []
    joined = model.joined_keys() is not None

    def given(count: int) -> list[str]:
        names = patch_names(image.shape[-2:], count) if image is not None else shown.labels if shown else []
        return ["cls"] * (count - len(names)) + names

    patterns = []
    for site in model.sites():
        pattern = seen[f"{site.path}.pattern"][0]
        queries = given(pattern.shape[1]) if site.queries == "input" else fed
        keys = given(pattern.shape[2]) if site.keys == "input" else fed
        if joined and site.kind == "cross":
            keys = task.places()
        patterns.append(AttentionPatterns(site.path, pattern, queries, keys))
    label = name or (shown.name if shown else "")
    return Looked(label, task.answer(said[0]), patterns, image if task.start is None else None)


def patch_names(image: Sequence[int], tokens: int) -> list[str]:
    """``row,column`` of each patch of an image."""
    rows, columns = patch_grid(image, tokens)
    return [f"{row},{column}" for row in range(rows) for column in range(columns)]
