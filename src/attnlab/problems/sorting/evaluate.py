"""Evaluation of lists, by length and by class, and which two neighbours decided the answer to one.

A model with lowest pooling says it itself: the token with the lowest score speaks for the list, and of the
two beside it the one that scores lower is the other half of the pair. Any list can be asked so.

Any other model is asked by trying: of every pair of neighbours it is seen how the evidence e for "sorted"
(the difference of the two logits) changes when the two change places:

    effect = e(exchanged) - e

If the list was called unsorted, the pair whose exchange speaks most for "sorted" decided it. That takes a
pass for each pair, so lists may not be longer than ``MOST``.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.evaluate import Evaluation, mean, proportion
from attnlab.analysis.predict import Prediction
from attnlab.devices import to_device_of
from attnlab.model import Model
from attnlab.models import Classifier
from attnlab.pooling import LowestPool
from attnlab.problems.sorting.lists import lengths_of
from attnlab.problems.sorting.task import Sorting
from attnlab.problems.sorting.words import CLASSES, SORTED, UNSORTED
from attnlab.results import Interval
from attnlab.sets import Examples
from attnlab.taps import record

MOST = 256
"""The longest list of which every pair is tried."""
BATCH = 64


@dataclass(frozen=True)
class Neighbours:
    """Two neighbours by their places, which count from 1, and how they were found."""

    places: list[int]
    numbers: list[int]
    against: bool
    by: Literal["scores", "exchange"]


@torch.inference_mode()
def deciding_neighbours(model: Model, numbers: Int[Tensor, "L"], *, against: bool) -> Neighbours | None:
    """The pair that decided ``against`` "sorted"; if nothing did, the pair with the lowest score.

    None if there are no scores, and nothing spoke against or the list is too long to try.
    """
    how: Literal["scores", "exchange"]
    if isinstance(model, Classifier) and isinstance(model.pool, LowestPool):
        first, how = _by_scores(model, numbers), "scores"
    elif against and len(numbers) <= MOST:
        first, how = _by_exchange(model, numbers), "exchange"
    else:
        return None
    return Neighbours([first + 1, first + 2], numbers[first : first + 2].tolist(), against, how)


def _by_scores(model: Model, numbers: Int[Tensor, "L"]) -> int:
    """The pair of the lowest-scoring token and the lower-scoring one beside it."""
    with record(model, "pool.token_scores") as seen:
        model(*to_device_of(model, numbers[None]))
    scores = seen["pool.token_scores"][0, -len(numbers) :, 0]
    lowest = int(scores.argmin())
    left = scores[lowest - 1].item() if lowest else torch.inf
    right = scores[lowest + 1].item() if lowest + 1 < len(numbers) else torch.inf
    return lowest - 1 if left < right else lowest


def _by_exchange(model: Model, numbers: Int[Tensor, "L"]) -> int:
    """The pair whose exchange brings the most evidence; equal neighbours change nothing."""
    tried = exchanged(numbers)
    found = [evidence(model, part) for part in tried.split(BATCH)]  # type: ignore[no-untyped-call]
    return int(torch.cat(found).argmax())


def exchanged(numbers: Int[Tensor, "L"]) -> Int[Tensor, "P L"]:
    """The list with each pair of neighbours exchanged in turn."""
    pairs = torch.arange(len(numbers) - 1)
    rows = numbers.repeat(len(pairs), 1)
    rows[pairs, pairs], rows[pairs, pairs + 1] = numbers[1:], numbers[:-1]
    return rows


def evidence(model: Model, lists: Int[Tensor, "N L"]) -> Float[Tensor, "N"]:
    """What speaks for "sorted"; on the CPU."""
    logits: Tensor = model(*to_device_of(model, lists)).cpu()
    return logits[:, SORTED] - logits[:, UNSORTED]


@dataclass(frozen=True)
class ByClass:
    """Shares of right answers among sorted and among unsorted lists, their mean, and of each answer."""

    right_of: dict[str, float]
    balanced_accuracy: float
    answers: dict[str, float]

    @classmethod
    def of(cls, given: Int[Tensor, "N"], said: Int[Tensor, "N"]) -> "ByClass":
        right = {
            name: mean(said[given == each] == each)
            for each, name in enumerate(CLASSES)
            if (given == each).any()
        }
        answers = {name: mean(said == each) for each, name in enumerate(CLASSES)}
        return cls(right, sum(right.values()) / len(right), answers)


@dataclass(frozen=True)
class Length:
    """Lists of one length."""

    length: int
    examples: int
    exact_match: float
    exact_match_interval: Interval


@dataclass(frozen=True, kw_only=True)
class SortingEvaluation(Evaluation):
    """With the share right of sorted and of unsorted lists, the shares of answers, and shares by length."""

    right_of: dict[str, float]
    balanced_accuracy: float
    answers: dict[str, float]
    loss: float
    negatives: str
    by_length: list[Length]

    @classmethod
    def measured(
        cls, whole: Evaluation, task: Sorting, examples: Examples, said: Int[Tensor, "N 1"]
    ) -> "SortingEvaluation":
        exact, lengths = said[:, 0] == examples.targets, lengths_of(examples.inputs[0])
        return cls(
            **vars(whole),
            **vars(ByClass.of(examples.targets, said[:, 0])),
            loss=whole.teacher_forced.loss,
            negatives=task.negatives,
            by_length=[
                Length(length, *proportion(exact[lengths == length]))
                for length in sorted(set(lengths.tolist()))
            ],
        )

    def remarks(self) -> list[str]:
        """How unsorted lists were made, and where other lengths are measured."""
        made = f"unsorted lists by {self.negatives}; half of all lists are sorted"
        return [made, "'attnlab lengths' measures other lengths"]


@dataclass(frozen=True, kw_only=True)
class SortingPrediction(Prediction):
    """With the truth, and the neighbours that decided the answer if they are known."""

    truth: str | None
    neighbours: Neighbours | None

    @classmethod
    def described(
        cls, plain: Prediction, task: Sorting, model: Model, example: Examples
    ) -> "SortingPrediction":
        against = plain.output != CLASSES[SORTED]
        neighbours = deciding_neighbours(model, example.inputs[0][0], against=against)
        return cls(**vars(plain), truth=task.answer(example.targets), neighbours=neighbours)

    def remark(self) -> str:
        """Which neighbours of a list decided the answer."""
        if self.neighbours is None:
            return ""
        (a, b), (first, second) = self.neighbours.numbers, self.neighbours.places
        word = "decided by" if self.neighbours.against else "lowest score at"
        return f"   {word} {a} {b} (places {first} and {second})"
