"""What a model answers to examples of any task, or to inputs as people write them, and how sure it is.

An answer is a row of tokens; a class is a row of one. The probability of an answer is the product over its
tokens of p(token | input, tokens before it).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.parallel import in_order
from attnlab.analysis.subjects import BATCH, batches
from attnlab.devices import device_of, to_device_of
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.results import Result, own_class
from attnlab.sets import Examples, Group, grouped, shifted
from attnlab.specs import Task

Item = TypeVar("Item")


def answer(task: Task, model: Model, examples: Examples) -> Int[Tensor, "N T"]:
    """The likeliest class, or the tokens of greedy decoding; on the CPU."""
    (source,) = to_device_of(model, examples.inputs[0])
    return model.answer(source, start=task.start, length=examples.answer_length).cpu()


def answer_all(
    task: Task, model: Model, examples: Examples, *, progress: Progress = silent
) -> Int[Tensor, "N T"]:
    """The same for many examples, a batch at a time."""
    found = torch.empty(len(examples), examples.answer_length, dtype=torch.long)
    done = 0
    parts = batches(examples, model)
    for part in in_order(lambda each: answer(task, model, each), parts, device=device_of(model)):
        found[done : done + len(part)] = part
        done += len(part)
        progress(done, len(examples))
    return found


def fed_inputs(task: Task, examples: Examples, said: Int[Tensor, "N T"]) -> tuple[Tensor, ...]:
    """What the model is given while it says ``said``."""
    source = examples.inputs[0]
    return (source,) if task.start is None else (source, shifted(said, task.start))


@torch.inference_mode()
def probability(
    task: Task, model: Model, examples: Examples, said: Int[Tensor, "N T"]
) -> Float[Tensor, "N"]:
    """Of the whole answer ``said``."""
    logits = model(*to_device_of(model, *fed_inputs(task, examples, said))).cpu() / model.temperature
    return logits.reshape(*said.shape, -1).log_softmax(dim=-1).gather(-1, said[..., None]).sum((1, 2)).exp()


@dataclass(frozen=True, kw_only=True)
class Prediction(Result):
    """The answer to one input. A task that says more about it has a subclass of this one."""

    input: str
    output: str
    probability: float
    correct: bool | None

    @property
    def text(self) -> str:
        """The answer as a person reads it."""
        return self.output

    @classmethod
    def described(cls, plain: "Prediction", task: Any, model: Model, example: Examples) -> "Prediction":
        """``plain`` with what a subclass adds of one example."""
        return plain

    def remark(self) -> str:
        """What else is said of the answer, for people."""
        return ""


def predict(task: Task, model: Model, examples: Sequence[Examples]) -> Iterator[Prediction]:
    """The answer to each single example, its probability, and whether it is right.

    Inputs of the same length are answered together, a few hundred at a time.
    """
    parts = (grouped(examples[start : start + BATCH]) for start in range(0, len(examples), BATCH))
    yield from _each(lambda part: answer_groups(task, model, part), parts, model)


def predict_lines(
    task: Task, model: Model, lines: Iterable[str], read: Callable[[str], Examples]
) -> Iterator[Prediction]:
    """The same of any number of inputs as people write them, of which a few batches are held at a time.

    ``read`` reads what the task's own ``parse`` refuses. The first line that cannot be read ends it with an
    ``InputError``, which tells its number unless there is only one.
    """

    def answered(batch: tuple[int, list[str]]) -> list[Prediction]:
        return answer_groups(task, model, _parsed(task, *batch, read))

    yield from _each(answered, _numbered(lines), model)


def _each(
    work: Callable[[Item], list[Prediction]], parts: Iterable[Item], model: Model
) -> Iterator[Prediction]:
    for batch in in_order(work, parts, device=device_of(model)):
        yield from batch


def _numbered(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Batches of lines, each with the number of its first."""
    left, first = iter(lines), 1
    while batch := list(islice(left, BATCH)):
        yield first, batch
        first += len(batch)


def _parsed(task: Task, first: int, lines: Sequence[str], read: Callable[[str], Examples]) -> list[Group]:
    with suppress(InputError):  # one of them is no input, or the number of an example
        return task.parse_all(lines)
    examples = []
    for number, text in enumerate(lines, start=first):
        try:
            examples.append(read(text))
        except InputError as error:
            raise InputError(f"line {number}: {error}" if first + len(lines) > 2 else str(error)) from error
    return grouped(examples)


def answer_groups(task: Task, model: Model, groups: Sequence[Group]) -> list[Prediction]:
    """The answers to examples, in the order of their places."""
    found: dict[int, Prediction] = {}
    kind = own_class(task, Prediction)
    for places, examples in groups:
        (source,) = to_device_of(model, examples.inputs[0])
        said, sure = model.answer_surely(source, start=task.start, length=examples.answer_length)
        said = said.cpu()
        right = (said == examples.targets.reshape(said.shape)).all(dim=1)
        rows = zip(places, task.show_all(examples), said, sure.tolist(), right.tolist(), strict=True)
        for row, (place, shown, tokens, chance, correct) in enumerate(rows):
            plain = Prediction(
                input=shown.name,
                output=task.answer(tokens),
                probability=chance,
                correct=None if shown.truth is None else correct,
            )
            found[place] = plain
            if kind is not Prediction:
                found[place] = kind.described(plain, task, model, examples[slice(row, row + 1)])
    return [found[place] for place in range(len(found))]
