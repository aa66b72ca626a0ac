"""What a model answers to examples of any task, and how sure it is.

An answer is a row of tokens; a class is a row of one. The probability of an answer is the product over its
tokens of p(token | input, tokens before it).
"""

from collections.abc import Iterator
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.decoding import BATCH
from attnlab.analysis.parallel import in_order
from attnlab.examples import Examples, shifted
from attnlab.model import Model
from attnlab.models import Seq2Seq
from attnlab.progress import Progress, silent
from attnlab.spec import Task


def answer(task: Task, model: Model, examples: Examples) -> Int[Tensor, "N T"]:
    """The likeliest class, or the tokens of greedy decoding."""
    source = examples.inputs[0]
    if task.start is None:
        return model(source).argmax(dim=-1)[:, None]
    return cast(Seq2Seq, model).greedy(source, start=task.start, length=task.target_length)


def answer_all(
    task: Task, model: Model, examples: Examples, *, progress: Progress = silent
) -> Int[Tensor, "N T"]:
    """The same for many examples, a batch at a time."""
    found: list[Tensor] = []
    done = 0
    for part in in_order(lambda each: answer(task, model, each), in_parts(examples)):
        found.append(part)
        done += len(part)
        progress(done, len(examples))
    return torch.cat(found)


def in_parts(examples: Examples) -> Iterator[Examples]:
    """The examples in parts of at most ``BATCH``."""
    for start in range(0, len(examples), BATCH):
        yield examples[slice(start, start + BATCH)]


def fed_inputs(task: Task, examples: Examples, said: Int[Tensor, "N T"]) -> tuple[Tensor, ...]:
    """What the model is given while it says ``said``."""
    source = examples.inputs[0]
    return (source,) if task.start is None else (source, shifted(said, task.start))


@torch.inference_mode()
def probability(
    task: Task, model: Model, examples: Examples, said: Int[Tensor, "N T"]
) -> Float[Tensor, "N"]:
    """Of the whole answer ``said``."""
    logits = model(*fed_inputs(task, examples, said))
    return logits.reshape(*said.shape, -1).log_softmax(dim=-1).gather(-1, said[..., None]).sum((1, 2)).exp()
