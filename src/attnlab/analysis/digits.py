"""How well a model reads digits, class by class, and what it answers to single images."""

import re
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.analysis.evaluation import Split, share
from attnlab.errors import InputError
from attnlab.tasks import Digits, Examples
from attnlab.training.measuring import compare

BATCH = 500
_PLACE = re.compile(r"(?:(train|valid|test):)?(\d{1,9})")


def evaluate_digits(task: Digits, model: nn.Module, *, seed: int, split: Split = "test") -> dict[str, Any]:
    """Measure ``model`` on a split."""
    examples: Examples = getattr(task.splits(seed), split)
    logits = answers(model, examples)
    given, said = examples.targets, logits.argmax(dim=1)
    right = given == said
    confusion = torch.zeros(task.vocabulary, task.vocabulary, dtype=torch.long)
    confusion.index_put_((given, said), torch.ones_like(given), accumulate=True)
    return {
        "split": split,
        **share("exact_match", right),
        "loss": compare(logits, given).loss,
        "by_class": [
            {"class": digit, **share("exact_match", right[given == digit])}
            for digit in range(task.vocabulary)
            if (given == digit).any()
        ],
        "confusion": confusion.tolist(),
        "data": task.data.source,
        "sample": task.data.sample,
    }


@torch.inference_mode()
def answers(model: nn.Module, examples: Examples) -> Float[Tensor, "N V"]:
    """Logits of all examples, a batch at a time."""
    parts = (examples[slice(start, start + BATCH)] for start in range(0, len(examples), BATCH))
    return torch.cat([model(*part.inputs) for part in parts])


def predict_digits(
    task: Digits, model: nn.Module, *, seed: int, texts: Sequence[str]
) -> list[dict[str, Any]]:
    """The answer to each image (``test:7``, ``valid:12``), its probability, and whether it is right."""
    splits = task.splits(seed)
    chosen = [
        find_image(text, {name: getattr(splits, name) for name in ("train", "valid", "test")})
        for text in texts
    ]
    images = torch.stack([examples.inputs[0][place] for _, examples, place in chosen])
    with torch.inference_mode():
        chances = model(images).softmax(dim=1)
    return [
        {
            "input": f"{name}:{place}",
            "output": str(int(chance.argmax())),
            "probability": chance.max().item(),
            "correct": int(chance.argmax()) == int(examples.targets[place]),
            "truth": str(int(examples.targets[place])),
        }
        for (name, examples, place), chance in zip(chosen, chances, strict=True)
    ]


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
