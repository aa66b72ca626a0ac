"""What a model answers to examples of any task, how sure it is, and how good the answers are.

An answer is a row of tokens; a class is a row of one. The probability of an answer is the product over its
tokens of p(token | input, tokens before it).
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.parallel import in_order
from attnlab.analysis.subjects import Answers, join, judge
from attnlab.examples import Examples, shifted
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.spec import Task

BATCH = 500  # activations of so many examples still fit into the processor's cache


def answer(task: Task, model: Model, examples: Examples) -> Int[Tensor, "N T"]:
    """The likeliest class, or the tokens of greedy decoding."""
    return model.answer(examples.inputs[0], start=task.start, length=task.target_length)


def answer_all(
    task: Task, model: Model, examples: Examples, *, progress: Progress = silent
) -> Int[Tensor, "N T"]:
    """The same for many examples, a batch at a time."""
    found = torch.empty(len(examples), task.target_length, dtype=torch.long)
    done = 0
    for part in in_order(lambda each: answer(task, model, each), in_parts(examples)):
        found[done : done + len(part)] = part
        done += len(part)
        progress(done, len(examples))
    return found


def in_parts(examples: Examples) -> Iterator[Examples]:
    """The examples in parts of at most ``BATCH``."""
    for start in range(0, len(examples), BATCH):
        yield examples[slice(start, start + BATCH)]


def score(model: Model, examples: Examples) -> Answers:
    """How good the answers are if the true tokens are fed, a batch at a time."""
    return join(list(in_order(lambda part: judge(model(*part.inputs), part.targets), in_parts(examples))))


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
