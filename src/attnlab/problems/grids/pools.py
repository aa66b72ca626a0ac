"""Grids made of the digits of one split, and sets of keys that mean something in a grid."""

from typing import final

import torch
from jaxtyping import Float, Int, Real, UInt8
from torch import Generator, Tensor

from attnlab.data.augmenting import augment
from attnlab.images import Scale, scaled
from attnlab.problems.digits.task import SIDE
from attnlab.problems.grids.task import Grids
from attnlab.sets import Examples, own_generator, shifted
from attnlab.specs import Augment


@final
class Pool:
    """Digits of one split, and the grids that are made of them."""

    def __init__(
        self, task: Grids, pixels: UInt8[Tensor, "M 28 28"], labels: Int[Tensor, "M"], scale: Scale
    ) -> None:
        self._task, self._pixels, self._labels, self._scale = task, pixels, labels, scale

    def drawn(self, count: int, *words: int) -> Examples:
        """Grids of digits drawn with replacement, by the generator that ``words`` name."""
        size = (count, self._task.cells)
        return self.examples(torch.randint(len(self._labels), size, generator=own_generator(*words)))

    def examples(self, chosen: Int[Tensor, "N C"]) -> Examples:
        """The grids of the given digits, with teacher-forced decoder input."""
        target = self._labels[chosen]
        return Examples(
            (chosen, shifted(target, self._task.start)),
            target,
            lambda chosen, fed: (self.images(chosen), fed),
        )

    def pixels(self, chosen: Int[Tensor, "N C"]) -> UInt8[Tensor, "N Y X"]:
        """The images of grids as they are."""
        return join_cells(self._pixels[chosen.flatten()].view(*chosen.shape, SIDE, SIDE), self._task.rows)

    def images(
        self, chosen: Int[Tensor, "N C"], alter: Augment | None = None, generator: Generator | None = None
    ) -> Float[Tensor, "N Y X"]:
        """The images of grids, each digit altered in its own way if so asked."""
        cells = scaled(self._pixels[chosen.flatten()], self._scale)
        if alter is not None and generator is not None:
            cells = augment(cells, alter, generator)
        return join_cells(cells.view(*chosen.shape, SIDE, SIDE), self._task.rows)


def join_cells(cells: Real[Tensor, "N C 28 28"], rows: int) -> Real[Tensor, "N Y X"]:
    """One image of all cells, row by row."""
    count, columns = len(cells), cells.shape[1] // rows
    grid = cells.view(count, rows, columns, SIDE, SIDE).transpose(2, 3)
    return grid.reshape(count, rows * SIDE, columns * SIDE)


def grid_sets(
    rows: int, columns: int, side: int, *, pooled: bool
) -> dict[tuple[str, str], dict[str, Tensor]]:
    """Sets for a model that reads grids, with ``side`` patches along a cell; ``pooled``: a key a cell.

    Every patch is in a cell, and so is every digit asked for: key s is in ``cell`` if it is in that of t.
    """
    cells = torch.arange(rows * columns).view(rows, columns)
    patches = cells.repeat_interleave(side, dim=0).repeat_interleave(side, dim=1).flatten()
    asked, keys = cells.flatten(), cells.flatten() if pooled else patches
    return {
        ("encoder", "self"): {"cell": patches[:, None] == patches},
        ("decoder", "cross"): {"cell": asked[:, None] == keys},
    }
