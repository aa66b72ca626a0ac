"""Evaluation of lists, by length and by class, and what decided the answer to a single one."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.evaluate import Evaluation, mean, proportion
from attnlab.analysis.predict import Prediction
from attnlab.examples import Examples
from attnlab.problems.sorting.deciding import Neighbours
from attnlab.problems.sorting.lists import lengths_of
from attnlab.problems.sorting.task import Sorting
from attnlab.problems.sorting.words import CLASSES
from attnlab.results import Interval


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
        right = right_of(examples.targets, said[:, 0])
        return cls(
            **vars(whole),
            right_of=right,
            balanced_accuracy=sum(right.values()) / len(right),
            answers=shares_of_answers(said[:, 0]),
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


def right_of(given: Int[Tensor, "N"], said: Int[Tensor, "N"]) -> dict[str, float]:
    """Shares of right answers among sorted and among unsorted lists."""
    return {
        name: mean(said[given == each] == each)
        for each, name in enumerate(CLASSES)
        if (given == each).any()
    }


def shares_of_answers(said: Int[Tensor, "N"]) -> dict[str, float]:
    """How often each answer is given."""
    return {name: mean(said == each) for each, name in enumerate(CLASSES)}


@dataclass(frozen=True, kw_only=True)
class SortingPrediction(Prediction):
    """With the truth, and the neighbours that decided the answer if they are known."""

    truth: str | None
    neighbours: Neighbours | None

    def remark(self) -> str:
        """Which neighbours of a list decided the answer."""
        if self.neighbours is None:
            return ""
        (a, b), (first, second) = self.neighbours.numbers, self.neighbours.places
        word = "decided by" if self.neighbours.against else "lowest score at"
        return f"   {word} {a} {b} (places {first} and {second})"
