"""Telling which digit an image shows.

The training set is parted once and for all, by a shuffle that no seed changes: the last tenth (6,000 of
MNIST's 60,000) is for choosing by, the rest for learning from. The test set is the data's own.
"""

from functools import cached_property, lru_cache
from pathlib import Path
from typing import final

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from attnlab.spec import DigitsTask
from attnlab.tasks.examples import Examples, Splits
from attnlab.tasks.mnist import load_digits_data
from attnlab.tasks.mnist_files import DigitImages

CLASSES = 10
_PARTING = 1998  # the seed of the one shuffle


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
        train, valid = self._parting()
        data, spec = self.data, self.spec
        mean, deviation = self._scale(data.train_images[train])

        def examples(images: UInt8[Tensor, "N 28 28"], labels: UInt8[Tensor, "N"]) -> Examples:
            return Examples(((images.float() / 255 - mean) / deviation,), labels.long())

        return Splits(
            examples(data.train_images[train], data.train_labels[train]),
            examples(data.train_images[valid], data.train_labels[valid]),
            examples(data.test_images[: spec.test], data.test_labels[: spec.test]),
        )

    def _parting(self) -> tuple[Int[Tensor, "N"], Int[Tensor, "M"]]:
        """Which images of the training set are learned from, and which are chosen by."""
        count = len(self.data.train_labels)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(_PARTING))
        rest = count - count // 10
        return order[:rest][: self.spec.train], order[rest:][: self.spec.valid]

    def _scale(self, images: UInt8[Tensor, "N 28 28"]) -> tuple[float, float]:
        """What is subtracted from pixels of 0 to 1, and what they are divided by."""
        match self.spec.scaling:
            case "unit":
                return 0.0, 1.0
            case "signed":
                return 0.5, 0.5
            case "standard":
                deviation, mean = torch.std_mean(images.double() / 255, correction=0)
                return mean.item(), deviation.item() or 1.0


@lru_cache(maxsize=2)
def _load(directory: str) -> DigitImages:
    """Read once a process."""
    return load_digits_data(Path(directory) if directory else None)
