"""What analyses of heads work on: a trained model, examples to try it on, and groups of these examples.

By teacher forcing one pass tells which examples greedy decoding gets wholly right: as long as every
highest logit is right, both feed the same tokens. So nothing here needs to decode token by token.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlab.analysis.parallel import in_order
from attnlab.devices import device_of
from attnlab.errors import InputError, LabError
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.runs import RunFolder
from attnlab.sets import Examples, one_example
from attnlab.specs import Split, Task
from attnlab.taps import SUPPLIED, record, taps

NUMBERED = re.compile(r"(train|valid|test):([0-9]{1,9})")
"""An example of a split by its number."""
BATCH = 500  # activations of so many examples still fit into the processor's cache
NUMBERS = 2**24  # that a batch leaves at taps, at most


@dataclass(frozen=True)
class Subject:
    """``strata`` are groups of examples by name, ``places`` the names of the targets of one example."""

    model: Model
    examples: Examples
    strata: dict[str, Bool[Tensor, "N"]]
    places: list[str]

    def __post_init__(self) -> None:
        require_attention(self.model)
        require_examples(self.examples)


def require_examples(examples: Examples) -> None:
    if len(examples) == 0:
        raise InputError("there are no examples to look at; give at least 1")


def read_example(task: Task, seed: int, text: str) -> Examples:
    """One example as a person writes it, or by its number in a split: ``test:7``."""
    try:
        return task.parse(text)
    except InputError:
        match = NUMBERED.fullmatch(text.strip())
        if match is None:
            raise
    split: Split = match[1]  # type: ignore[assignment]  # the pattern knows no other names
    examples, number = task.splits(seed)[split], int(match[2])
    if number >= len(examples):
        last = len(examples) - 1
        raise InputError(f"there is no {split} example {number}; they go from 0 to {last:,}")
    return one_example(examples, number, task.padding)


def batches(examples: Examples, model: Model, size: int = BATCH) -> Iterator[Examples]:
    """The examples in parts of at most ``size``, on the device of ``model``."""
    device = device_of(model)
    for start in range(0, len(examples), size):
        yield examples[slice(start, start + size)].to(device)


@torch.inference_mode()
def batch_size(model: Model, examples: Examples, *quantities: str, most: int = BATCH) -> int:
    """How many examples at once leave no more than ``NUMBERS`` at the taps of ``quantities``: ``most`` of
    them, or fewer where the model is large.
    """
    names = [name for name in taps(model) if name.rpartition(".")[2] in (quantities or SUPPLIED)]
    with record(model, *names) as seen:
        model(*examples[slice(0, 1)].to(device_of(model)).inputs)
    return max(1, min(most, NUMBERS // max(1, sum(map(Tensor.numel, seen.values())))))


def require_attention(model: Model, *, instead: str = "") -> None:
    """Refuse a model without heads; ``instead`` says what to use, if anything."""
    if attentions(model):
        return
    unseen = model.unseen()
    if unseen:
        raise LabError(
            f"the model {model.called} computes attention in {unseen} that cannot be seen; observe it by "
            "attnlab.wrap(module), or hold attnlab's own taps.Heads there"
        )
    use = f"; {instead}" if instead else ""
    raise LabError(f"the model {model.called} has no attention, so it has no heads to look at{use}")


@dataclass(frozen=True)
class Answers:
    """How well every example is answered: loss by example, and which targets are right; on the CPU."""

    loss: Float[Tensor, "N"]
    right: Bool[Tensor, "N T"]

    @property
    def exact(self) -> Bool[Tensor, "N"]:
        """Which examples are wholly right, by greedy decoding as by teacher forcing."""
        return self.right.all(dim=1)

    @property
    def exact_match(self) -> float:
        """The share of examples that are wholly right."""
        return self.exact.double().mean().item()

    @property
    def mean_loss(self) -> float:
        return self.loss.double().mean().item()


def judge(logits: Float[Tensor, "N *T V"], targets: Int[Tensor, "N *T"]) -> Answers:
    """Compare logits with targets; the loss is the mean over an example's targets."""
    count = len(targets)
    each = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    right = logits.argmax(dim=-1) == targets
    return Answers(each.reshape(count, -1).mean(dim=1).cpu(), right.reshape(count, -1).cpu())


def score(model: Model, examples: Examples) -> Answers:
    """How good the answers are if the true tokens are fed, a batch at a time."""

    def answers(part: Examples) -> Answers:
        return judge(model(*part.inputs), part.targets)

    parts = batches(examples, model, batch_size(model, examples))
    return join(list(in_order(answers, parts, device=device_of(model))))


def join(parts: list[Answers]) -> Answers:
    loss = torch.cat([part.loss.detach() for part in parts])
    return Answers(loss, torch.cat([part.right for part in parts]))


def load_subject(run: RunFolder, *, split: Split = "valid", count: int = 2000) -> Subject:
    """The model of ``run`` and up to ``count`` examples of a split that its seed gives."""
    if count < 1:
        raise InputError(f"examples is {count}; it must be at least 1")
    spec = run.spec()
    return subject_of(spec.task, run.model, spec.task.splits(spec.seed)[split][slice(0, count)])


def subject_of(task: Task, model: Model, examples: Examples) -> Subject:
    return Subject(model, examples, task.strata(examples), task.places_of(examples.answer_length))
