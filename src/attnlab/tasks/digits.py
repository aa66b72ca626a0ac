"""Telling which digit an image shows.

The training set is parted once and for all, by a shuffle that no seed changes: the last tenth (6,000 of
MNIST's 60,000) is for choosing by, the rest for learning from. The test set is the data's own.
"""

from functools import cached_property, lru_cache
from pathlib import Path
from typing import final

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from attnlab.errors import InputError
from attnlab.spec import DigitsTask
from attnlab.tasks.augmenting import augment
from attnlab.tasks.examples import Examples, Split, Splits
from attnlab.tasks.mnist import load_digits_data
from attnlab.tasks.mnist_images import DigitImages
from attnlab.tasks.sorting import own_generator

CLASSES = 10
Scale = tuple[float, float]
_PARTING = 1998  # the seed of the one shuffle
_ALTERING = 28  # which of a seed's generators


@final
class Digits:
    """The task of ``DigitsTask``: images (N, 28, 28) of numbers, and their classes (N,)."""

    vocabulary = CLASSES

    def __init__(self, spec: DigitsTask) -> None:
        self.spec = spec

    @cached_property
    def data(self) -> DigitImages:
        """The images, from wherever they could be had."""
        return _load(self.spec.directory)

    def splits(self, seed: int) -> Splits:
        """Training, validation and test examples: the same for every seed, which only orders them."""

        def examples(split: Split) -> Examples:
            images, labels = self.pixels(split)
            return Examples((scaled(images, self.scale),), labels.long())

        def altered(batch: Examples, step: int) -> Examples:
            (images,), generator = batch.inputs, own_generator(seed, _ALTERING, step)
            return Examples((augment(images, self.spec.augment, generator),), batch.targets)

        return Splits(
            examples("train"),
            examples("valid"),
            examples("test"),
            altered=altered if self.spec.augment.any else None,
        )

    def pixels(self, split: Split) -> tuple[UInt8[Tensor, "N 28 28"], UInt8[Tensor, "N"]]:
        """The images of a split as they are, and their classes."""
        data = self.data
        match split:
            case "test":
                return data.test_images[: self.spec.test], data.test_labels[: self.spec.test]
            case "train" | "valid":
                chosen = self._parting()[split == "valid"]
                return data.train_images[chosen], data.train_labels[chosen]

    @cached_property
    def scale(self) -> Scale:
        """What is subtracted from pixels of 0 to 1, and what they are divided by."""
        match self.spec.scaling:
            case "unit":
                return 0.0, 1.0
            case "signed":
                return 0.5, 0.5
            case "standard":
                images, _ = self.pixels("train")
                deviation, mean = torch.std_mean(images.double() / 255, correction=0)
                return mean.item(), deviation.item() or 1.0

    def _parting(self) -> tuple[Int[Tensor, "N"], Int[Tensor, "M"]]:
        """Which images of the training set are learned from, and which are chosen by."""
        count = len(self.data.train_labels)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(_PARTING))
        if count < 10:
            raise InputError(
                f"{self.data.source} has {count} training images; at least 10 are needed, of which one in "
                "ten is kept to choose by"
            )
        rest = count - count // 10
        return order[:rest][: self.spec.train], order[rest:][: self.spec.valid]


def scaled(images: UInt8[Tensor, "N R C"], scale: Scale) -> Float[Tensor, "N R C"]:
    """Images as models are given them."""
    mean, deviation = scale
    return (images.float() / 255 - mean) / deviation


@lru_cache(maxsize=2)
def _load(directory: str) -> DigitImages:
    """Read once a process."""
    return load_digits_data(Path(directory) if directory else None)
