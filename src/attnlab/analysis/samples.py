"""A few images with what a reader says about them, drawn at random or from its mistakes."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from attnlab.analysis.image_classifier import ImageClassifier, Images
from attnlab.errors import InputError
from attnlab.images import ImageTask
from attnlab.progress import Progress, silent
from attnlab.spec import Split


@dataclass(frozen=True)
class Sample:
    """One image; ``truth`` is None where nobody knows it."""

    task: ImageTask
    name: str
    pixels: UInt8[Tensor, "*C Y X"]
    answer: list[int]
    chances: Float[Tensor, "D V"]
    truth: list[int] | None = None

    @property
    def right(self) -> bool | None:
        """Whether every class is right."""
        return None if self.truth is None else self.truth == self.answer

    @property
    def output(self) -> str:
        """The names of the classes that were said."""
        return self.named(self.answer)

    @property
    def shown(self) -> str | None:
        """The names of the classes that it shows."""
        return None if self.truth is None else self.named(self.truth)

    def named(self, numbers: list[int]) -> str:
        """Names of classes by their numbers."""
        return self.task.joined([self.task.classes[number] for number in numbers])

    @property
    def probability(self) -> float:
        """Of the whole answer: the product over its cells."""
        return self.chances.max(dim=-1).values.prod().item()

    def to_json(self) -> dict[str, Any]:
        """Names and numbers, without pixels; ``probabilities`` has a row for each cell of the image."""
        told: dict[str, Any] = {
            "input": self.name,
            "output": self.output,
            "probability": self.probability,
            "correct": self.right,
        }
        if self.truth is not None:
            told["truth"] = self.shown
        return {**told, "probabilities": self.chances.tolist()}


def read_samples(
    task: ImageTask,
    names: list[str],
    pixels: UInt8[Tensor, "N *C Y X"],
    said: Float[Tensor, "N D V"],
    truth: list[list[int] | None],
) -> list[Sample]:
    """Images with their answers, the likeliest class at each place."""
    answers = said.argmax(dim=-1).tolist()
    return [Sample(task, *each) for each in zip(names, pixels, answers, said, truth, strict=True)]


@dataclass(frozen=True)
class Drawn:
    """Samples, the images they were drawn from, and how many of those are wrong if that was looked at."""

    samples: list[Sample]
    images: int
    wrong: int | None


def draw_samples(
    reader: ImageClassifier,
    *,
    split: Split = "test",
    count: int = 10,
    wrong: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> Drawn:
    """``count`` images of a split in a random order; with ``wrong`` only such as are not read rightly."""
    if count < 1:
        raise InputError(f"--samples is {count}; it must be at least 1")
    images = reader.images(split)
    order = torch.randperm(len(images.truth), generator=torch.Generator().manual_seed(seed))
    if not wrong:
        chosen = order[:count]
        said = reader.predict_proba(images.pixels[chosen], progress=progress)
        return Drawn(_samples(reader.task, split, images, chosen, said), len(order), None)
    said = reader.predict_proba(images.pixels, progress=progress)
    missed = is_wrong(said, images.truth)
    chosen = order[missed[order]][:count]
    return Drawn(_samples(reader.task, split, images, chosen, said[chosen]), len(order), int(missed.sum()))


def first_samples(reader: ImageClassifier, *, split: Split, count: int) -> list[Sample]:
    """The first images of a split."""
    images = reader.images(split)
    chosen = torch.arange(min(count, len(images.truth)))
    return _samples(reader.task, split, images, chosen, reader.predict_proba(images.pixels[chosen]))


def is_wrong(said: Float[Tensor, "N D V"], truth: Int[Tensor, "N D"]) -> Bool[Tensor, "N"]:
    """Which images are not wholly right."""
    return (said.argmax(dim=-1) != truth).any(dim=1)


def _samples(
    task: ImageTask, split: Split, images: Images, chosen: Int[Tensor, "M"], said: Float[Tensor, "M D V"]
) -> list[Sample]:
    names = [f"{split}:{place}" for place in chosen.tolist()]
    return read_samples(task, names, images.pixels[chosen], said, images.truth[chosen].tolist())
