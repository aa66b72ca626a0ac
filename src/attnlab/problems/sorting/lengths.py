"""How well a model tells sorted lists at lengths that it has and has not learned from.

At each length and for each way to put lists out of order, the same lists for every model, half of them
sorted. Accuracy alone hides one failure: a model that says the same to every list is right about half of
them. Such a **constant predictor** is told by its answers: at least 99% of them are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.analysis.evaluate import proportion
from attnlab.analysis.lengths import merged, read_lengths
from attnlab.analysis.parallel import in_order
from attnlab.analysis.statistics import percent
from attnlab.devices import device_of, to_device_of
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.models import Classifier
from attnlab.problems.sorting.evaluate import ByClass
from attnlab.problems.sorting.lists import check_length
from attnlab.problems.sorting.task import Sorting
from attnlab.problems.sorting.words import CLASSES, LENGTHS, LISTS, NEGATIVES, PAD, read_negatives
from attnlab.progress import Progress, silent
from attnlab.results import Interval, Result, Row, plain_fields
from attnlab.runs import RunFolder
from attnlab.runs.weights import other_task
from attnlab.sets import Examples

CONSTANT = 0.99
"""Share of one answer from which on a model counts as a constant predictor."""

_TOKENS = 2**13  # of one batch: what stays in the cache is faster


@dataclass(frozen=True)
class Trained:
    """What a run has learned from."""

    low: int
    high: int
    negatives: str


@dataclass(frozen=True)
class LengthRow:
    """Lists of one length that were put out of order in one way; ``constant`` is what is always said."""

    negatives: str
    seed: int
    length: int
    examples: int
    accuracy: float
    accuracy_interval: Interval
    right_of: dict[str, float]
    balanced_accuracy: float
    answers: dict[str, float]
    constant: str | None


@dataclass(frozen=True, kw_only=True)
class Lengths(Result):
    """Rows way by way and length by length, and a sentence for each answer that is always given."""

    shown_by: ClassVar[str] = "attnlab.problems.sorting.tables"

    run: str
    trained: Trained
    rows: list[LengthRow]
    constant: list[str]

    def records(self) -> list[Row]:
        """A row for each way and length."""
        says = ({f"says_{name}": share for name, share in row.answers.items()} for row in self.rows)
        return [plain_fields(row) | shares for row, shares in zip(self.rows, says, strict=True)]


def lengths_run(
    run: RunFolder,
    *,
    lengths: str = LENGTHS,
    negatives: str | Sequence[str] = NEGATIVES,
    examples: int = LISTS,
    seed: int = 0,
    keep: str = "lengths",
    progress: Progress = silent,
) -> Lengths:
    """Measure a run at each of the ``lengths``, such as 8,16,...,4096, and keep the result under ``keep``.

    ``negatives`` are how lists are put out of order: swap, reference, shuffle, each by itself, or a mixture
    such as swap=0.5,shuffle=0.5. Half of the ``examples`` at each length are sorted. What is kept already
    stays, but for lengths and ways that are measured again.
    """
    if examples < 2:
        raise InputError(f"examples is {examples}; it must be at least 2, a sorted and an unsorted list")
    ways = _ways(negatives)
    for each in ways:
        read_negatives(each)
    task, model = run.spec().task, run.model
    if not isinstance(task, Sorting):
        raise other_task(run, Sorting.kind)
    wanted = read_lengths(lengths, check_length, LENGTHS)
    for length in wanted:
        check_reach(model, length)
    rows = []
    total, done = len(ways) * sum(wanted), 0
    for each in ways:
        for length in wanted:
            rows.append(measure_length(task, model, length, each, examples, seed=seed))
            done += length
            progress(done, total)
    trained = Trained(task.low, task.high, task.negatives)
    found = Lengths(run=run.name, trained=trained, rows=rows, constant=constant_sentences(rows))
    earlier = run.kept(keep, Lengths)
    every = merged([] if earlier is None else earlier.rows, rows, lambda row: (row.negatives, row.length))
    run.keep(keep, replace(found, rows=every, constant=constant_sentences(every)))
    return found


def _ways(negatives: str | Sequence[str]) -> tuple[str, ...]:
    """Ways with commas between them, unless these are the parts of a mixture."""
    if not isinstance(negatives, str):
        return tuple(negatives)
    return (negatives,) if "=" in negatives else tuple(dict.fromkeys(negatives.split(",")))


def check_reach(model: Model, length: int) -> None:
    """Let positions that cannot reach a length say so before any work is done."""
    if isinstance(model, Classifier):
        tokens = model.embed(torch.full((1, length), PAD - 1, device=device_of(model)))
        model.positions.at(tokens.shape[1], tokens)


def measure_length(
    task: Sorting, model: Model, length: int, negatives: str, examples: int, *, seed: int = 0
) -> LengthRow:
    """Accuracy at one length, and the shares of both answers."""

    def answer(part: Examples) -> tuple[Tensor, Tensor]:
        return part.targets, model(*to_device_of(model, *part.inputs)).argmax(dim=1).cpu()

    most = max(2, _TOKENS // length // 2 * 2)
    drawn = task.draws(examples, length, negatives, seed=seed, most=most)
    parts = in_order(answer, drawn, device=device_of(model))
    truth, said = map(torch.cat, zip(*parts, strict=True))
    found = ByClass.of(truth, said)
    same, share = max(found.answers.items(), key=lambda each: each[1])
    return LengthRow(
        negatives,
        seed,
        length,
        *proportion(truth == said),
        **vars(found),
        constant=same if share >= CONSTANT else None,
    )


def constant_sentences(rows: list[LengthRow]) -> list[str]:
    """A plain sentence for each answer that the model gives to everything at some lengths."""
    sentences = []
    for way in dict.fromkeys(row.negatives for row in rows):
        for answer in CLASSES:
            cells = [row for row in rows if row.negatives == way and row.constant == answer]
            if cells:
                where = ", ".join(f"{row.length:,}" for row in cells)
                least = min(row.answers[answer] for row in cells)
                sentences.append(
                    f"{way}: at length {where} the model is a constant predictor: it says {answer!r} to "
                    f"{'all' if least == 1 else f'at least {percent(least)} of the'} lists, "
                    "so its accuracy is the share of such lists and no skill"
                )
    return sentences
