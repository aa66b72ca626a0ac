"""Where every head looks: the attention patterns of single sums, lists and grids of digits."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.answers import answer, fed_inputs
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.models import Seq2Seq, attentions
from attnlab.models.images import patch_grid
from attnlab.problems.grids import Grids
from attnlab.spec import Task
from attnlab.taps import record


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
def look_at_grid(task: Grids, model: Seq2Seq, name: str, example: Examples) -> Looked:
    """Every attention's patterns while the model reads one grid greedily.

    A row of a decoder is labelled with the token that goes in at that place, a key of its cross attention
    with the patch, or with the cell where the decoder sees cells.
    """
    (image, _), cells = example.inputs, task.places()
    emitted = model.greedy(image, start=task.start, length=task.target_length)
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
