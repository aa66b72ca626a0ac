"""What a model answers to examples of any task, or to inputs as people write them, and how sure it is.

An answer is a row of tokens; a class is a row of one. The probability of an answer is the product over its
tokens of p(token | input, tokens before it).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.parallel import in_order
from attnlab.analysis.subjects import BATCH, batches
from attnlab.devices import device_of, to_device_of
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.results import Result, own_class
from attnlab.sets import Examples, shifted
from attnlab.specs import Task


def answer(task: Task, model: Model, examples: Examples) -> Int[Tensor, "N T"]:
    """The likeliest class, or the tokens of greedy decoding; on the CPU."""
    (source,) = to_device_of(model, examples.inputs[0])
    return model.answer(source, start=task.start, length=task.target_length).cpu()


def answer_all(
    task: Task, model: Model, examples: Examples, *, progress: Progress = silent
) -> Int[Tensor, "N T"]:
    """The same for many examples, a batch at a time."""
    found = torch.empty(len(examples), task.target_length, dtype=torch.long)
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
    logits = model(*to_device_of(model, *fed_inputs(task, examples, said))).cpu()
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
    parts = (examples[start : start + BATCH] for start in range(0, len(examples), BATCH))
    for batch in in_order(lambda part: _predict(task, model, part), parts, device=device_of(model)):
        yield from batch


def _predict(task: Task, model: Model, examples: Sequence[Examples]) -> list[Prediction]:
    alike: dict[tuple[torch.Size, ...], list[int]] = {}
    for place, example in enumerate(examples):
        alike.setdefault(tuple(part.shape for part in example.inputs), []).append(place)
    found: dict[int, Prediction] = {}
    for places in alike.values():
        given = zip(*(examples[place].inputs for place in places), strict=True)
        targets = torch.cat([examples[place].targets for place in places])
        joined = Examples(tuple(torch.cat(parts) for parts in given), targets)
        said = answer(task, model, joined)
        sure = probability(task, model, joined, said).tolist()
        for place, tokens, chance in zip(places, said, sure, strict=True):
            shown = task.show(examples[place])
            plain = Prediction(
                input=shown.name,
                output=task.answer(tokens),
                probability=chance,
                correct=None
                if shown.truth is None
                else torch.equal(tokens, examples[place].targets.flatten()),
            )
            kind = own_class(task, Prediction)
            found[place] = kind.described(plain, task, model, examples[place])
    return [found[place] for place in range(len(examples))]
