"""Parts of models that read images: one digit (B, 28, 28), or a grid of them (B, 28 rows, 28 columns)."""

import math
from collections.abc import Sequence
from typing import final

from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlab.model import Model
from attnlab.models.embedding import Embed
from attnlab.spec import SIDE
from attnlab.taps import Tap


def cut_patches(images: Float[Tensor, "B Y X"], patch: int) -> Float[Tensor, "B T P"]:
    """Squares of ``patch`` x ``patch`` pixels, row by row, each flattened row by row."""
    rows, columns = images.shape[1] // patch, images.shape[2] // patch
    squares = images.reshape(images.shape[0], rows, patch, columns, patch).transpose(2, 3)
    return squares.reshape(images.shape[0], rows * columns, patch * patch)


def join_patches(patches: Float[Tensor, "B T P"], rows: int) -> Float[Tensor, "B Y X"]:
    """The images of which ``cut_patches`` gives these ``rows`` rows of patches."""
    count, tokens, pixels = patches.shape
    side, columns = math.isqrt(pixels), tokens // rows
    squares = patches.reshape(count, rows, columns, side, side).transpose(2, 3)
    return squares.reshape(count, rows * side, columns * side)


def shuffle_patches(
    images: Float[Tensor, "B Y X"], patch: int, order: Int[Tensor, "T"]
) -> Float[Tensor, "B Y X"]:
    """Images whose patch t is patch ``order[t]`` of the given ones."""
    return join_patches(cut_patches(images, patch)[:, order], images.shape[1] // patch)


def patch_grid(image: Sequence[int], tokens: int) -> tuple[int, int]:
    """Rows and columns of the patches of an image of so many pixels; a token may stand in front of them."""
    high, wide = image
    sides = (side for side in range(1, min(high, wide) + 1) if high % side == 0 and wide % side == 0)
    shapes = [(high // side, wide // side) for side in sides]
    return next(shape for shape in shapes if shape[0] * shape[1] <= tokens)


@final
class PatchTokens(Embed):
    """relu(patch W + b + pos): a token for each patch, with a trained vector for its place."""

    def __init__(self, *, patch: int, width: int, positions: Float[Tensor, "T D"]) -> None:
        super().__init__()
        self.patch = patch
        self.linear = nn.Linear(patch * patch, width)
        self.positions = nn.Parameter(positions)
        self.place = Tap()

    @property
    def tokens(self) -> int:
        """T, patches of an image."""
        return len(self.positions)

    def forward(self, images: Float[Tensor, "B 28 28"]) -> Float[Tensor, "B T D"]:
        return (self.linear(cut_patches(images, self.patch)) + self.place(self.positions)).relu()

    def mask(self, given: Float[Tensor, "B 28 28"]) -> None:
        """No image has padding."""


@final
class MLP(Model):
    """relu(x W_1 + b_1) W_2 + b_2 over all pixels."""

    def __init__(self, *, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.up = nn.Linear(SIDE * SIDE, hidden)
        self.readout = nn.Linear(hidden, vocabulary)

    def forward(self, images: Float[Tensor, "B 28 28"]) -> Float[Tensor, "B V"]:
        return self.readout(self.up(images.flatten(1)).relu())

    @property
    def read_path(self) -> str:
        return "up"


@final
class CNN(Model):
    """Filters, ReLU, 2 x 2 max pooling, and a linear map of all that is left (LeCun et al., 1998)."""

    def __init__(self, *, filters: int, kernel: int, vocabulary: int) -> None:
        super().__init__()
        self.filters = nn.Conv2d(1, filters, kernel, padding=kernel // 2)
        self.pool = nn.MaxPool2d(2)
        self.readout = nn.Linear(filters * (SIDE // 2) ** 2, vocabulary)

    def forward(self, images: Float[Tensor, "B 28 28"]) -> Float[Tensor, "B V"]:
        return self.readout(self.pool(self.filters(images[:, None]).relu()).flatten(1))

    @property
    def read_path(self) -> str:
        return "pool"
