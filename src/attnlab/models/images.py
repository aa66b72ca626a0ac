"""Models that read images, (B, Y, X) in grey, (B, 3, Y, X) in colour, beside transformers; their parts.

**Patch attention**: one attention between the patches of an image. As it stands, with T tokens of width D:

    x      = relu(patches W + b + pos)                      (B, T, D)
    z      = softmax(q k^T / sqrt(D)) v                     (B, T, D), one head
    y      = relu(z W_1 + b_1) W_2 + b_2                    (B, T, D)
    logits = mean over tokens of y, times W_c, plus b_c     (B, V)

There is no output projection, no residual sum and no layer norm, so a token's own content reaches the end
only through the attention. While the pattern is uniform, every token gets the same mean of v, and
positions cancel: the model sees a bag of patches.
"""

import math
from collections.abc import Sequence
from typing import final

from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlab.attention import Attention, NoHeads
from attnlab.blocks import EncoderBlock, FeedForward, NoSum, PreNorm, Residual
from attnlab.model import Model
from attnlab.models.classifier import Classifier, Embed
from attnlab.pooling import MeanPool
from attnlab.positions import LearnedTable, Positions, start_positions
from attnlab.specs import PatchAttentionModel
from attnlab.taps import Tap

ImageShape = tuple[int, int, int]
"""Channels, height and width."""


def cut_patches(images: Float[Tensor, "B *C Y X"], patch: int) -> Float[Tensor, "B T P"]:
    """Squares of ``patch`` x ``patch`` pixels, row by row, each flattened by channel and row by row."""
    count, *channels, height, width = images.shape
    rows, columns = height // patch, width // patch
    squares = images.reshape(count, *channels, rows, patch, columns, patch).transpose(-3, -2)
    if channels:
        squares = squares.movedim(1, 3)
    return squares.reshape(count, rows * columns, math.prod(channels) * patch * patch)


def join_patches(
    patches: Float[Tensor, "B T P"], rows: int, channels: Sequence[int] = ()
) -> Float[Tensor, "B *C Y X"]:
    """The images of which ``cut_patches`` gives these ``rows`` rows of patches."""
    count, tokens, pixels = patches.shape
    side, columns = math.isqrt(pixels // math.prod(channels)), tokens // rows
    squares = patches.reshape(count, rows, columns, *channels, side, side)
    if channels:
        squares = squares.movedim(3, 1)
    return squares.transpose(-3, -2).reshape(count, *channels, rows * side, columns * side)


def shuffle_patches(
    images: Float[Tensor, "B *C Y X"], patch: int, order: Int[Tensor, "T"]
) -> Float[Tensor, "B *C Y X"]:
    """Images whose patch t is patch ``order[t]`` of the given ones."""
    _, *channels, height, _ = images.shape
    return join_patches(cut_patches(images, patch)[:, order], height // patch, channels)


def patch_grid(image: Sequence[int], tokens: int) -> tuple[int, int]:
    """Rows and columns of the patches of an image of so many pixels; a token may stand in front of them."""
    high, wide = image[-2:]
    sides = (side for side in range(1, min(high, wide) + 1) if high % side == 0 and wide % side == 0)
    shapes = [(high // side, wide // side) for side in sides]
    return next(shape for shape in shapes if shape[0] * shape[1] <= tokens)


@final
class PatchTokens(Embed):
    """relu(patch W + b + pos): a token for each patch, with a trained vector for its place."""

    def __init__(
        self, *, patch: int, width: int, positions: Float[Tensor, "T D"], channels: int = 1
    ) -> None:
        super().__init__()
        self.patch: int = patch
        self.linear = nn.Linear(channels * patch * patch, width)
        self.positions = nn.Parameter(positions)
        self.place = Tap()

    @property
    def tokens(self) -> int:
        """T, patches of an image."""
        return len(self.positions)

    def forward(self, images: Float[Tensor, "B *C Y X"]) -> Float[Tensor, "B T D"]:
        return (self.linear(cut_patches(images, self.patch)) + self.place(self.positions)).relu()

    def mask(self, given: Float[Tensor, "B *C Y X"]) -> None:
        """No image has padding."""

    def patch_positions(self) -> Positions:
        """Its own table."""
        table = LearnedTable(width=self.positions.shape[1], length=len(self.positions), scale=0.0)
        table.load_state_dict({"table": self.positions})
        return Positions(add=table)


def build_patch_attention(spec: PatchAttentionModel, *, vocabulary: int, image: ImageShape) -> Classifier:
    """The model of ``spec``; weights are drawn later, positions start as the spec says."""
    width = spec.width

    def norm() -> nn.Module:
        return nn.LayerNorm(width) if spec.norm else nn.Identity()

    def residual() -> Residual:
        return (PreNorm if spec.residual else NoSum)(norm=norm(), dropout=0.0)

    (heads,) = spec.head_counts or (spec.heads,)
    attention: Attention | NoHeads = NoHeads(width=width)
    if heads:
        output = None if spec.projection else nn.Identity()
        attention = Attention(width=width, heads=heads, head_width=width // spec.heads, output=output)
    feed = FeedForward(width=width, hidden=spec.hidden, activation=nn.ReLU())
    places = start_positions(spec.positions, tokens=spec.tokens(*image[1:]), width=width)
    return Classifier(
        embed=PatchTokens(patch=spec.patch, width=width, channels=image[0], positions=places),
        positions=Positions(),
        encoder=[EncoderBlock(attention=attention, feed=feed, residual=residual)],
        norm=norm(),
        pool=MeanPool(),
        readout=nn.Linear(width, vocabulary),
    )


@final
class MLP(Model):
    """relu(x W_1 + b_1) W_2 + b_2 over all pixels."""

    def __init__(self, *, image: ImageShape, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.up = nn.Linear(math.prod(image), hidden)
        self.readout = nn.Linear(hidden, vocabulary)

    def forward(self, images: Float[Tensor, "B *C Y X"]) -> Float[Tensor, "B V"]:
        return self.readout(self.up(images.flatten(1)).relu())

    @property
    def read_path(self) -> str:
        return "up"


@final
class CNN(Model):
    """Filters, ReLU, 2 x 2 max pooling, and a linear map of all that is left (LeCun et al., 1998)."""

    def __init__(self, *, image: ImageShape, filters: int, kernel: int, vocabulary: int) -> None:
        super().__init__()
        channels, height, width = image
        self.filters = nn.Conv2d(channels, filters, kernel, padding=kernel // 2)
        self.pool = nn.MaxPool2d(2)
        self.readout = nn.Linear(filters * (height // 2) * (width // 2), vocabulary)

    def forward(self, images: Float[Tensor, "B *C Y X"]) -> Float[Tensor, "B V"]:
        return self.readout(
            self.pool(self.filters(images if images.ndim == 4 else images[:, None]).relu()).flatten(1)
        )

    @property
    def read_path(self) -> str:
        return "pool"
