"""Telling which digit an image shows: 54,000 of MNIST's 60,000 training images are learned from."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, final

from attnlab.images import ImageShape, LabelledImages
from attnlab.lazy import Later
from attnlab.problems.problem import Problem

if TYPE_CHECKING:
    from jaxtyping import UInt8
    from torch import Tensor

    from attnlab import sets
    from attnlab.data import ink, mnist
    from attnlab.data.image_set import ImageSet
else:
    ink, mnist = Later.parts("attnlab.data", "ink", "mnist")

SIDE = 28
CLASSES = tuple("0123456789")


@final
@dataclass(frozen=True, kw_only=True)
class Digits(Problem, LabelledImages):
    """Telling which digit an image of 28 x 28 pixels shows: MNIST, or any set of that form."""

    kind: ClassVar[str] = "digits"
    shows: ClassVar[str] = "digit"
    ink: ClassVar[bool] = True
    paired_by: ClassVar[tuple[str, ...]] = ("directory", "test")
    classes: ClassVar[tuple[str, ...]] = CLASSES
    image_shape: ClassVar[ImageShape] = (1, SIDE, SIDE)

    directory: str = ""
    """A folder with IDX or Parquet files to use instead of MNIST."""

    @cached_property
    def data(self) -> "ImageSet":
        return mnist.load_once(self.directory)

    def read_picture(self, source: Path | bytes, name: str) -> "UInt8[Tensor, '28 28']":
        """The ink of a picture, scaled and placed as in MNIST."""
        return ink.read_picture_digits(source, name, rows=1, columns=1)

    def input_words(self) -> str:
        return "pixels of 0 to 1, ink 1"

    def strata(self, examples: "sets.Examples") -> "dict[str, Tensor]":
        """Images by their digit."""
        return {f"digit {name}": group for name, group in super().strata(examples).items()}
