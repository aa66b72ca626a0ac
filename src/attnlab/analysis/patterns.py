"""Where every head looks: the attention patterns of single sums, lists and grids of digits."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.decoding import decode, fed
from attnlab.models import Classifier, Seq2Seq, attentions
from attnlab.models.images import patch_grid
from attnlab.taps import record
from attnlab.tasks import Addition, Examples, Grids, Sorting
from attnlab.tasks.sorting import CLASSES


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


def attention_patterns(task: Addition, model: Seq2Seq, pair: Int[Tensor, "2"]) -> list[AttentionPatterns]:
    """The patterns that ``look_at_sum`` finds."""
    return look_at_sum(task, model, pair).patterns


@torch.no_grad()
def look_at_sum(task: Addition, model: Seq2Seq, pair: Int[Tensor, "2"]) -> Looked:
    """Every attention's patterns while the model adds ``pair`` greedily.

    A row of a decoder is labelled with the token that goes in at that place; what comes out stands in
    the next row.
    """
    pairs = pair[None]
    emitted = decode(task, model, pairs)
    source, target = task.source(pairs), fed(task, emitted)
    with record(model, "*.pattern") as seen:
        model(source, target)
    given, said = task.symbols(source[0]), task.symbols(target[0])
    found = []
    for name in attentions(model):
        queries = given if name.startswith("encoder") else said
        keys = said if name.startswith("decoder") and name.endswith("self") else given
        found.append(AttentionPatterns(name, seen[f"{name}.pattern"][0], queries, keys))
    a, b = pair.tolist()
    return Looked(f"{a}+{b}", task.answer(emitted[0]), found)


@torch.no_grad()
def look_at_grid(task: Grids, model: Seq2Seq, name: str, example: Examples) -> Looked:
    """Every attention's patterns while the model reads one grid greedily.

    A row of a decoder is labelled with the token that goes in at that place, a key of its cross attention
    with the patch, or with the cell where the decoder sees cells.
    """
    (image, _), cells = example.inputs, task.cell_names()
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


@torch.no_grad()
def look_at_list(task: Sorting, model: Classifier, numbers: Int[Tensor, "L"]) -> Looked:
    """Every attention's patterns while the model reads one list."""
    with record(model, "*.pattern") as seen:
        said = int(model(numbers[None]).argmax())
    found = []
    for name in attentions(model):
        pattern = seen[f"{name}.pattern"][0]
        front = ["cls"] * (pattern.shape[-1] - len(numbers))
        signs = front + task.symbols(numbers)
        found.append(AttentionPatterns(name, pattern, signs, signs))
    return Looked(" ".join(task.symbols(numbers)), CLASSES[said], found)
