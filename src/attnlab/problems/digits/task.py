"""Telling which digit an image shows: 54,000 of MNIST's 60,000 training images are learned from."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, final

from attnlab.images import ImageShape, LabelledImages
from attnlab.lazy import Later

if TYPE_CHECKING:
    from torch import Tensor

    from attnlab import examples as sets
    from attnlab.data import mnist
    from attnlab.data.image_set import ImageSet
    from attnlab.problems.digits import presets, studies
    from attnlab.spec import Spec
    from attnlab.studies import Study
else:
    mnist, presets = Later("attnlab.data.mnist"), Later("attnlab.problems.digits.presets")
    studies = Later("attnlab.problems.digits.studies")

SIDE = 28
CLASSES = tuple("0123456789")


@final
@dataclass(frozen=True, kw_only=True)
class Digits(LabelledImages):
    """Telling which digit an image of 28 x 28 pixels shows: MNIST, or any set of that form."""

    kind: ClassVar[str] = "digits"
    paired_by: ClassVar[tuple[str, ...]] = ("directory", "test")
    classes: ClassVar[tuple[str, ...]] = CLASSES
    image_shape: ClassVar[ImageShape] = (1, SIDE, SIDE)

    directory: str = ""
    """A folder with IDX or Parquet files to use instead of MNIST."""

    @classmethod
    def presets(cls) -> "dict[str, Spec]":
        return presets.PRESETS

    @classmethod
    def studies(cls) -> "tuple[Study, ...]":
        """What was asked about it, with many seeds."""
        return studies.STUDIES

    @cached_property
    def data(self) -> "ImageSet":
        return mnist.load_once(self.directory)

    def strata(self, examples: "sets.Examples") -> "dict[str, Tensor]":
        """Images by their digit."""
        return {f"digit {name}": group for name, group in super().strata(examples).items()}
