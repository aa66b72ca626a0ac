"""Telling which digit an image shows.

The training set is parted once and for all, by a shuffle that no seed changes: the last tenth (6,000 of
MNIST's 60,000) is for choosing by, the rest for learning from. The test set is the data's own.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, final

from attnlab.errors import InputError
from attnlab.lazy import Later
from attnlab.spec.augment import Augment
from attnlab.spec.codec import later
from attnlab.spec.task import Split, Task

if TYPE_CHECKING:
    import torch
    from jaxtyping import Int, UInt8
    from torch import Tensor

    from attnlab import examples as sets
    from attnlab.data.mnist_images import DigitImages
    from attnlab.problems.digits import pixels, presets, studies
    from attnlab.spec import Spec
    from attnlab.studies import Study
else:
    torch, sets = Later("torch"), Later("attnlab.examples")
    pixels, presets = Later("attnlab.problems.digits.pixels"), Later("attnlab.problems.digits.presets")
    studies = Later("attnlab.problems.digits.studies")

CLASSES = 10
Scale = tuple[float, float]
_PARTING = 1998  # the seed of the one shuffle
_ALTERING = 28  # which of a seed's generators


@final
@dataclass(frozen=True, kw_only=True)
class Digits(Task):
    """Telling which digit an image of 28 x 28 pixels shows: MNIST, or any set of that form."""

    kind: ClassVar[str] = "digits"
    paired_by: ClassVar[tuple[str, ...]] = ("directory", "test")
    vocabulary: ClassVar[int] = CLASSES
    images: ClassVar[bool] = True

    train: int = 54_000
    """Training images, at most; the first of those that are not validation images."""
    valid: int = 6_000
    """Validation images: the same part of the training set for every seed, at most a tenth of it."""
    test: int = 10_000
    """Test images, at most; the first of the test set."""
    scaling: Literal["unit", "signed", "standard"] = "unit"
    """Pixels from 0 to 1, from -1 to 1, or with mean 0 and deviation 1 over the training images."""
    directory: str = ""
    """A folder with IDX or Parquet files to use instead of MNIST."""
    augment: Augment = later(Augment())
    """How far training images are moved, turned, resized and bent, anew at each step."""

    @classmethod
    def presets(cls) -> "dict[str, Spec]":
        return presets.PRESETS

    @classmethod
    def studies(cls) -> "tuple[Study, ...]":
        """What was asked about it, with many seeds."""
        return studies.STUDIES

    @cached_property
    def data(self) -> "DigitImages":
        """The images, from wherever they could be had."""
        return pixels.load(self.directory)

    def splits(self, seed: int) -> "sets.Splits":
        """Training, validation and test examples: the same for every seed, which only orders them."""

        def examples(split: Split) -> "sets.Examples":
            images, labels = self.pixels(split)
            return sets.Examples((pixels.scaled(images, self.scale),), labels.long())

        def altered(batch: "sets.Examples", step: int) -> "sets.Examples":
            (images,), generator = batch.inputs, sets.own_generator(seed, _ALTERING, step)
            return sets.Examples((pixels.augment(images, self.augment, generator),), batch.targets)

        return sets.Splits(
            examples("train"),
            examples("valid"),
            examples("test"),
            altered=altered if self.augment.any else None,
        )

    def pixels(self, split: Split) -> "tuple[UInt8[Tensor, 'N 28 28'], UInt8[Tensor, 'N']]":
        """The images of a split as they are, and their classes."""
        data = self.data
        match split:
            case "test":
                return data.test_images[: self.test], data.test_labels[: self.test]
            case "train" | "valid":
                chosen = self._parting()[split == "valid"]
                return data.train_images[chosen], data.train_labels[chosen]

    @cached_property
    def scale(self) -> Scale:
        """What is subtracted from pixels of 0 to 1, and what they are divided by."""
        match self.scaling:
            case "unit":
                return 0.0, 1.0
            case "signed":
                return 0.5, 0.5
            case "standard":
                images, _ = self.pixels("train")
                deviation, mean = torch.std_mean(images.double() / 255, correction=0)
                return mean.item(), deviation.item() or 1.0

    def _parting(self) -> "tuple[Int[Tensor, 'N'], Int[Tensor, 'M']]":
        """Which images of the training set are learned from, and which are chosen by."""
        count = len(self.data.train_labels)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(_PARTING))
        if count < 10:
            raise InputError(
                f"{self.data.source} has {count} training images; at least 10 are needed, of which one in "
                "ten is kept to choose by"
            )
        rest = count - count // 10
        return order[:rest][: self.train], order[rest:][: self.valid]

    def answer(self, tokens: "Tensor") -> str:
        """The digit."""
        return str(int(tokens))

    def strata(self, examples: "sets.Examples") -> "dict[str, Tensor]":
        """Images by their digit."""
        return {f"digit {name}": group for name, group in super().strata(examples).items()}
