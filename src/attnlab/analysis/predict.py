"""What a model answers to inputs as people write them, and how sure it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.analysis.answers import BATCH, answer, probability
from attnlab.analysis.parallel import in_order
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.results import Result
from attnlab.spec import Task


@dataclass(frozen=True, kw_only=True)
class Prediction(Result):
    """The answer to one input. A task that says more about it has a subclass of this one."""

    input: str
    output: str
    probability: float
    correct: bool | None

    def remark(self) -> str:
        """What else is said of the answer, for people."""
        return ""


def predict(task: Task, model: Model, examples: Sequence[Examples]) -> Iterator[Prediction]:
    """The answer to each single example, its probability, and whether it is right.

    Inputs of the same length are answered together, a few hundred at a time.
    """
    batches = (examples[start : start + BATCH] for start in range(0, len(examples), BATCH))
    for batch in in_order(lambda part: _predict(task, model, part), batches):
        yield from batch


def _predict(task: Task, model: Model, examples: Sequence[Examples]) -> list[Prediction]:
    """The answers to a batch, in its order."""
    alike: dict[tuple[torch.Size, ...], list[int]] = {}
    for place, example in enumerate(examples):
        alike.setdefault(tuple(part.shape for part in example.inputs), []).append(place)
    found: dict[int, Prediction] = {}
    for places in alike.values():
        joined = _joined([examples[place] for place in places])
        said = answer(task, model, joined)
        sure = probability(task, model, joined, said).tolist()
        for place, tokens, chance in zip(places, said, sure, strict=True):
            found[place] = _described(task, model, examples[place], tokens, chance)
    return [found[place] for place in range(len(examples))]


def _joined(examples: Sequence[Examples]) -> Examples:
    inputs = tuple(torch.cat(parts) for parts in zip(*(each.inputs for each in examples), strict=True))
    return Examples(inputs, torch.cat([each.targets for each in examples]))


def _described(task: Task, model: Model, example: Examples, said: Tensor, chance: float) -> Prediction:
    shown = task.show(example)
    plain = Prediction(
        input=shown.name,
        output=task.answer(said),
        probability=chance,
        correct=None if shown.truth is None else torch.equal(said, example.targets.flatten()),
    )
    extended: Prediction = task.predicted(plain, model, example)
    return extended
