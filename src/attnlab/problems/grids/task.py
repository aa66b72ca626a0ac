"""Reading a grid of digits, left to right and top to bottom.

The source is one image (28 rows, 28 columns), in which every cell holds a digit of its own, drawn with
replacement. Target: the digits. The decoder is fed the start token, which is no digit, and the target
shifted by one; as many digits as there are cells are always said, so there is no end token.

Grids to learn from and grids to choose by are made of different digits of the training set, the same two
parts as in the task of single digits; test grids are made of test digits. Validation and test grids are the
same for every seed.

Digits are kept once. A grid is kept as the numbers of its digits, and its image is made when it is asked
for: 60,000 grids of four digits would take 750 MB.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, final

from attnlab.images import ImageShape, ImageTask, Scale
from attnlab.lazy import Later
from attnlab.problems.digits.task import CLASSES, SIDE, Digits
from attnlab.problems.problem import Problem
from attnlab.specs.models import Augment, ModelSpec, PatchSeq2SeqModel
from attnlab.specs.rules import require
from attnlab.specs.task import KeySets, Split

if TYPE_CHECKING:
    from jaxtyping import Int, UInt8
    from torch import Tensor

    from attnlab import sets
    from attnlab.data import ink
    from attnlab.data.image_set import ImageSet
    from attnlab.problems.grids import pools
else:
    ink, sets, pools = Later.parts("attnlab", "data.ink", "sets", "problems.grids.pools")

MOST_CELLS = 64
"""Digits that a grid may have."""
MOST_GRIDS = 10_000_000
"""Grids of a split: their digits are drawn together."""

_ALL = 10**8  # more digits than there are
_TEST, _VALID, _TRAIN, _ALTERING = range(4)  # which generator
_FIXED = 2021  # stands for the seed where every seed has the same grids


@final
@dataclass(frozen=True, kw_only=True)
class Grids(Problem, ImageTask):
    """Reading all digits of a grid, left to right and top to bottom."""

    kind: ClassVar[str] = "grids"
    shows: ClassVar[str] = "digit"
    ink: ClassVar[bool] = True
    paired_by: ClassVar[tuple[str, ...]] = ("directory", "rows", "columns")
    classes: ClassVar[tuple[str, ...]] = CLASSES
    start: ClassVar[int] = len(CLASSES)

    rows: int = 2
    columns: int = 2
    train: int = 60_000
    """Grids of an epoch, of digits to learn from."""
    valid: int = 2_000
    """Validation grids, of the training set's digits that nobody learns from; the same for every seed."""
    test: int = 10_000
    """Test grids, of test digits; the same for every seed."""
    fresh: bool = False
    """New training grids for every epoch."""
    scaling: Literal["unit", "signed", "standard"] = "unit"
    """Pixels from 0 to 1, from -1 to 1, or with mean 0 and deviation 1 over the training images."""
    directory: str = ""
    """A folder with IDX or Parquet files to use instead of MNIST."""
    augment: Augment = Augment()
    """How far digits of training grids are moved, rotated, resized and bent, drawn again at each step."""

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            require(getattr(self, name) >= 1, f"task.{name}", getattr(self, name), "at least 1")
        super().__post_init__()
        for name in ("train", "valid", "test"):
            given = getattr(self, name)
            require(given <= MOST_GRIDS, f"task.{name}", given, f"at most {MOST_GRIDS:,}")
        rule = f"at most {MOST_CELLS} digits in all"
        require(self.cells <= MOST_CELLS, "task.rows x task.columns", self.cells, rule)

    @property
    def image_shape(self) -> ImageShape:
        return 1, SIDE * self.rows, SIDE * self.columns

    @cached_property
    def digits(self) -> Digits:
        """Where the digits come from."""
        return Digits(train=_ALL, valid=_ALL, test=_ALL, scaling=self.scaling, directory=self.directory)

    @property
    def data(self) -> "ImageSet":
        return self.digits.data

    @property
    def scale(self) -> Scale:
        return self.digits.scale

    def settled(self) -> "Grids":
        """With a directory that is found from everywhere."""
        return replace(self, directory=str(Path(self.directory).absolute())) if self.directory else self

    def splits(self, seed: int) -> "sets.Splits":
        """Training, validation and test grids; with ``fresh`` the training grids are those of epoch 0."""
        train = self._pool("train")

        def training(epoch: int) -> "sets.Examples":
            return train.drawn(self.train, seed, _TRAIN, epoch)

        def altered(batch: "sets.Examples", step: int) -> "sets.Examples":
            chosen, fed = batch.stored
            images = train.images(chosen, self.augment, sets.own_generator(seed, _ALTERING, step))
            return sets.Examples((images, fed), batch.targets)

        return sets.Splits(
            training(0),
            self._pool("valid").drawn(self.valid, _FIXED, _VALID),
            self._pool("test").drawn(self.test, _FIXED, _TEST),
            training if self.fresh else None,
            altered if self.augment.any else None,
        )

    def pixels(self, split: Split, seed: int = 0) -> "tuple[UInt8[Tensor, 'N Y X'], Int[Tensor, 'N C']]":
        """The images of a split as they are, and their digits; training grids are those of epoch 0."""
        examples: sets.Examples = self.splits(seed)[split]
        return self._pool(split).pixels(examples.stored[0]), examples.targets

    def _pool(self, split: Split) -> "pools.Pool":
        return pools.Pool(self, *self.cell_pixels(split), self.scale)

    def read_picture(self, source: Path | bytes, name: str) -> "UInt8[Tensor, 'Y X']":
        """The ink of a picture, cut into cells, each scaled and placed as in MNIST."""
        return ink.read_picture_digits(source, name, rows=self.rows, columns=self.columns)

    def cell_pixels(self, split: Split) -> "tuple[UInt8[Tensor, 'M 28 28'], Int[Tensor, 'M']]":
        """The digits that grids of a split are made of."""
        return self.digits.cell_pixels(split)

    def input_words(self) -> str:
        return "pixels of 0 to 1, ink 1"

    def key_sets(self, examples: "sets.Examples", model: ModelSpec) -> KeySets:
        """What ``pools.grid_sets`` names."""
        assert isinstance(model, PatchSeq2SeqModel)
        side, pooled = SIDE // model.patch, model.bridge == "cells"
        return pools.grid_sets(model.rows, model.columns, side, pooled=pooled)

    def strata(self, examples: "sets.Examples") -> "dict[str, Tensor]":
        """Grids by how many different digits they hold."""
        ordered = examples.targets.sort(dim=1).values
        different = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(dim=1)
        return {
            f"{count} different digits": different == count for count in sorted(set(different.tolist()))
        }
