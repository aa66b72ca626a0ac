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

from functools import cached_property
from typing import final

import torch
from jaxtyping import Float, Int, Real, UInt8
from torch import Generator, Tensor

from attnlab.spec import SIDE, Augment, DigitsTask, GridsTask
from attnlab.tasks.augmenting import augment
from attnlab.tasks.digits import CLASSES, Digits, Scale, scaled
from attnlab.tasks.examples import Examples, Split, Splits
from attnlab.tasks.mnist_images import DigitImages
from attnlab.tasks.sorting import own_generator

START = CLASSES
VOCABULARY = CLASSES + 1
_ALL = 10**9  # more digits than there are

_TEST, _VALID, _TRAIN, _ALTERING = range(4)  # which generator
_FIXED = 2021  # stands for the seed where every seed has the same grids


@final
class Grids:
    """The task of ``GridsTask``: grids of digits, (N, C) numbers of digits, and their images and tokens."""

    vocabulary = VOCABULARY
    start = START

    def __init__(self, spec: GridsTask) -> None:
        self.spec = spec
        self.target_length = spec.cells

    @cached_property
    def digits(self) -> Digits:
        """Where the digits come from."""
        spec = self.spec
        return Digits(
            DigitsTask(train=_ALL, valid=_ALL, test=_ALL, scaling=spec.scaling, directory=spec.directory)
        )

    @property
    def data(self) -> DigitImages:
        """The digits, from wherever they could be had."""
        return self.digits.data

    @property
    def scale(self) -> Scale:
        """What is subtracted from pixels of 0 to 1, and what they are divided by."""
        return self.digits.scale

    def splits(self, seed: int) -> Splits:
        """Training, validation and test grids; with ``fresh`` the training grids are those of epoch 0."""
        spec, train = self.spec, self._pool("train")

        def training(epoch: int) -> Examples:
            return train.drawn(spec.train, seed, _TRAIN, epoch)

        def altered(batch: Examples, step: int) -> Examples:
            chosen, fed = batch.kept
            images = train.images(chosen, spec.augment, own_generator(seed, _ALTERING, step))
            return Examples((images, fed), batch.targets)

        return Splits(
            training(0),
            self._pool("valid").drawn(spec.valid, _FIXED, _VALID),
            self._pool("test").drawn(spec.test, _FIXED, _TEST),
            training if spec.fresh else None,
            altered if spec.augment.any else None,
        )

    def pixels(self, split: Split, seed: int = 0) -> tuple[UInt8[Tensor, "N Y X"], Int[Tensor, "N C"]]:
        """The images of a split as they are, and their digits; training grids are those of epoch 0."""
        examples: Examples = getattr(self.splits(seed), split)
        return self._pool(split).pixels(examples.kept[0]), examples.targets

    def _pool(self, split: Split) -> "Pool":
        return Pool(self.spec, *self.digits.pixels(split), self.scale)

    def cell_names(self) -> list[str]:
        """``row,column`` of each digit, in the order in which they are read."""
        return [f"{row},{column}" for row in range(self.spec.rows) for column in range(self.spec.columns)]

    def answer(self, tokens: Int[Tensor, "T"]) -> str:
        """The digits that were said."""
        return "".join(self.symbols(tokens))

    def symbols(self, tokens: Int[Tensor, "T"]) -> list[str]:
        """A printable sign for each token."""
        return [str(token) if token < CLASSES else "⊢" for token in tokens.tolist()]


@final
class Pool:
    """Digits of one split, and the grids that are made of them."""

    def __init__(
        self, spec: GridsTask, pixels: UInt8[Tensor, "M 28 28"], labels: UInt8[Tensor, "M"], scale: Scale
    ) -> None:
        self._spec, self._pixels, self._labels, self._scale = spec, pixels, labels.long(), scale

    def drawn(self, count: int, *words: int) -> Examples:
        """Grids of digits drawn with replacement, by the generator that ``words`` name."""
        size = (count, self._spec.cells)
        return self.examples(torch.randint(len(self._labels), size, generator=own_generator(*words)))

    def examples(self, chosen: Int[Tensor, "N C"]) -> Examples:
        """The grids of the given digits, with teacher-forced decoder input."""
        target = self._labels[chosen]
        fed = torch.cat((torch.full_like(target[:, :1], START), target[:, :-1]), dim=1)
        return Examples((chosen, fed), target, lambda chosen, fed: (self.images(chosen), fed))

    def pixels(self, chosen: Int[Tensor, "N C"]) -> UInt8[Tensor, "N Y X"]:
        """The images of grids as they are."""
        return join_cells(self._pixels[chosen.flatten()].view(*chosen.shape, SIDE, SIDE), self._spec.rows)

    def images(
        self, chosen: Int[Tensor, "N C"], alter: Augment | None = None, generator: Generator | None = None
    ) -> Float[Tensor, "N Y X"]:
        """The images of grids, each digit altered in its own way if so asked."""
        cells = scaled(self._pixels[chosen.flatten()], self._scale)
        if alter is not None and generator is not None:
            cells = augment(cells, alter, generator)
        return join_cells(cells.view(*chosen.shape, SIDE, SIDE), self._spec.rows)


def join_cells(cells: Real[Tensor, "N C 28 28"], rows: int) -> Real[Tensor, "N Y X"]:
    """One image of all cells, row by row."""
    count, columns = len(cells), cells.shape[1] // rows
    grid = cells.view(count, rows, columns, SIDE, SIDE).transpose(2, 3)
    return grid.reshape(count, rows * SIDE, columns * SIDE)
