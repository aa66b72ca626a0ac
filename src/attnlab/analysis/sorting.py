"""How well a model tells sorted lists, by length and by class, and what it says to single ones."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.deciding import deciding_neighbours
from attnlab.analysis.digits import answers
from attnlab.analysis.evaluation import Split, share
from attnlab.analysis.prediction import predict
from attnlab.examples import Examples
from attnlab.models import Classifier
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.lists import lengths_of
from attnlab.problems.sorting.words import CLASSES, SORTED
from attnlab.training.measuring import compare


def evaluate_sorting(
    task: Sorting, model: Classifier, *, seed: int, split: Split = "test"
) -> dict[str, Any]:
    """Measure ``model`` on a split: lists of the lengths that it has learned from."""
    examples: Examples = task.splits(seed)[split]
    logits = answers(model, examples)
    given, said = examples.targets, logits.argmax(dim=1)
    right, lengths = given == said, lengths_of(examples.inputs[0])
    return {
        "split": split,
        **share("exact_match", right),
        **describe_answers(given, said),
        "loss": compare(logits, given).loss,
        "negatives": task.negatives,
        "by_length": [
            {"length": length, **share("exact_match", right[lengths == length])}
            for length in sorted(set(lengths.tolist()))
        ],
    }


def describe_answers(given: Int[Tensor, "N"], said: Int[Tensor, "N"]) -> dict[str, Any]:
    """Shares of right answers among sorted and among unsorted lists, their mean, and shares of answers."""
    right = {
        name: (said[given == each] == each).double().mean().item()
        for each, name in enumerate(CLASSES)
        if (given == each).any()
    }
    return {
        "right_of": right,
        "balanced_accuracy": sum(right.values()) / len(right),
        "answers": {name: (said == each).double().mean().item() for each, name in enumerate(CLASSES)},
    }


def predict_sorting(task: Sorting, model: Classifier, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The answer to each list, its probability, whether it is right, and which neighbours decided it."""
    return [
        {
            **found,
            "truth": task.show(task.parse(text)).truth,
            "neighbours": deciding_neighbours(
                model, task.numbers(text), against=found["output"] != CLASSES[SORTED]
            ),
        }
        for text, found in zip(texts, predict(task, model, texts), strict=True)
    ]
