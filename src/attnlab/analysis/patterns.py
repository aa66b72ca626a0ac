"""Where every head looks while a model answers one example: the attention patterns of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.ablate.baselines import check_heads
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.record import AttentionPatterns, record_answers
from attnlab.analysis.samples import find_image
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.results import Result, Row
from attnlab.runs import RunFolder
from attnlab.sets import Examples, one_example
from attnlab.specs import Split, Task
from attnlab.specs.codec import unwritten

MOST = 64
"""Examples that one figure can show."""


@dataclass(frozen=True)
class Looked:
    """One example, what the model answers to it, and where its heads look meanwhile.

    ``image`` is the input, if it is an image that a model classifies; ``note`` is what the task says about
    answers, such as that the ones are said first.
    """

    example: str
    answer: str
    patterns: list[AttentionPatterns]
    image: Float[Tensor, "*C Y X"] | None = None
    note: str = ""

    def of(self, head: str) -> tuple[AttentionPatterns, Float[Tensor, "T S"]]:
        """The attention that holds ``head``, and the head's own pattern."""
        path, _, index = head.rpartition(".")
        (found,) = (each for each in self.patterns if each.attention == path)
        return found, found.pattern[int(index)]


@dataclass(frozen=True, kw_only=True)
class Patterns(Result):
    """Where heads look: every head on one example, or ``head`` on several; ``looked`` has the patterns."""

    shown_by: ClassVar[str] = "attnlab.tables.patterns"

    run: str
    examples: list[str]
    head: str = unwritten("")
    looked: Sequence[Looked] = unwritten(())

    def records(self) -> list[Row]:
        """A row for each weight: of which head, on which example, from which query to which key."""
        return [
            {
                "example": each.example,
                "head": head,
                "query": query,
                "query_token": rows.queries[query],
                "key": key,
                "key_token": rows.keys[key],
                "weight": weight,
            }
            for each in self.looked
            for rows in each.patterns
            for head, weights in zip(rows.head_names, rows.pattern.tolist(), strict=True)
            if head == (self.head or head)
            for query, row in enumerate(weights)
            for key, weight in enumerate(row)
        ]


def run_patterns(
    run: RunFolder, *, example: str = "", head: str = "", split: Split = "valid", examples: int = 12
) -> Patterns:
    """Patterns of every head on the example that is named, or on the first of a split; or those of ``head``
    on that example, or on the first ``examples`` of the split.
    """
    if not 1 <= examples <= MOST:
        raise InputError(f"examples is {examples}; a figure shows from 1 to {MOST}")
    spec, model = run.spec(), run.model
    require_attention(model)
    check_heads(model, [head] if head else [])
    chosen = _chosen(spec.task, spec.seed, example, split, examples if head and not example else 1)
    with one_thread():
        looked = [look_at(spec.task, model, each, name) for name, each in chosen]
    return Patterns(run=run.name, examples=[each.example for each in looked], head=head, looked=looked)


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


def look_at(task: Task, model: Model, example: Examples, name: str | None = None) -> Looked:
    """Every attention's patterns while the model answers one example, without padding."""
    seen = record_answers(task, model, example, "*.pattern", names=[name] if name else ())
    image = None if seen.image is None or task.start is not None else seen.image[0]
    return Looked(seen.examples[0], seen.answers[0], seen.patterns(), image, seen.note)
