"""How well a model reads digits, class by class."""

import re
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.evaluate import share
from attnlab.analysis.parallel import in_order
from attnlab.errors import InputError
from attnlab.examples import Examples
from attnlab.images import ImageTask
from attnlab.model import Model
from attnlab.spec import Split
from attnlab.training.measuring import compare

BATCH = 500
_PLACE = re.compile(r"(?:(train|valid|test):)?(\d{1,9})")


def evaluate_digits(task: ImageTask, model: Model, *, seed: int, split: Split = "test") -> dict[str, Any]:
    """Measure ``model`` on a split."""
    examples: Examples = task.splits(seed)[split]
    logits = answers(model, examples)
    return {
        "split": split,
        **count_digits(task, examples.targets, logits.argmax(dim=1)),
        "loss": compare(logits, examples.targets).loss,
    }


def count_digits(task: ImageTask, given: Int[Tensor, "N"], said: Int[Tensor, "N"]) -> dict[str, Any]:
    """How many digits are right, in all and class by class, and which are taken for which."""
    right = given == said
    confusion = torch.zeros(len(task.classes), len(task.classes), dtype=torch.long)
    confusion.index_put_((given, said), torch.ones_like(given), accumulate=True)
    return {
        **share("exact_match", right),
        "by_class": [
            {"class": number, **share("exact_match", right[given == number]), "name": name}
            for number, name in enumerate(task.classes)
            if (given == number).any()
        ],
        "confusion": confusion.tolist(),
        "data": task.data.source,
        "sample": task.data.sample,
    }


def answers(model: Model, examples: Examples) -> Float[Tensor, "N V"]:
    """Logits of all examples, a batch at a time."""
    parts = (examples[slice(start, start + BATCH)] for start in range(0, len(examples), BATCH))
    return torch.cat(list(in_order(lambda part: model(*part.inputs), parts)))


def find_image(text: str, splits: dict[str, Examples]) -> tuple[str, Examples, int]:
    """The split and the place that ``test:7`` names."""
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text.strip()!r} names no image; write test:7 for the test image number 7")
    name, place = match[1] or "test", int(match[2])
    if place >= len(splits[name]):
        raise InputError(
            f"{text.strip()!r} is not there; {name} images go from 0 to {len(splits[name]) - 1}"
        )
    return name, splits[name], place
