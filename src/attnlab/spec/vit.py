"""Specs of transformers that read the patches of an image, which shows one class or a grid of them."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from attnlab.spec.images import CNNModel, MLPModel, PatchAttentionModel, require_patch
from attnlab.spec.positions import GridLearned, Learned, PatchPositionSpec
from attnlab.spec.rules import require
from attnlab.spec.stacks import StackSpec, check_stack
from attnlab.spec.tokens import Pooling
from attnlab.spec.words import write_variant

Stem = Literal["linear", "conv"]
"""How a patch becomes a token: a linear map of its pixels (Dosovitskiy et al., 2021), or a few small
convolutions whose strides multiply to the patch's side (Xiao et al., 2021)."""


@dataclass(frozen=True, kw_only=True)
class VitModel(StackSpec):
    """Vision transformer (Dosovitskiy et al., 2021): patches of an image in, one class out."""

    kind: ClassVar[str] = "vit"

    patch: int = 4
    """Pixels along each side of a patch; must divide those of an image, or of a cell of it."""
    stem: Stem = "linear"
    """From a patch to a token: linear, or convolutions that see a little of its neighbours too."""
    layers: int = 4
    positions: PatchPositionSpec = field(default_factory=GridLearned)
    pooling: Pooling = "mean"
    """How all tokens become one vector; lowest is for two classes only."""

    def __post_init__(self) -> None:
        require(self.layers >= 1, "model.layers", self.layers, "at least 1")
        require(self.patch >= 1, "model.patch", self.patch, "at least 1")
        rule = "another than 'lowest', which tells two classes apart and no more"
        require(self.pooling != "lowest", "model.pooling", self.pooling, rule)
        check_stack(self)

    def check_image(self, height: int, width: int) -> None:
        """Refuse images that it cannot be built for."""
        require_patch(self.patch, height, width)
        tokens = self.tokens(height, width)
        if self.pooling == "boundary":
            rule = "smaller, since boundary pooling takes differences"
            require(tokens >= 2, "model.patch", self.patch, rule)
        require_places(self.positions, tokens + self.front)

    @property
    def front(self) -> int:
        """Tokens in front of the patches: one, if it is what is read out."""
        return 1 if self.pooling == "cls" else 0

    def tokens(self, height: int, width: int) -> int:
        """Patches of an image."""
        return (height // self.patch) * (width // self.patch)

    @property
    def attentions(self) -> int:
        """How many attentions there are."""
        return self.layers


ImageModelSpec = PatchAttentionModel | MLPModel | CNNModel | VitModel
"""Models that tell one class of an image."""
IMAGE_MODELS = (PatchAttentionModel, MLPModel, CNNModel, VitModel)


@dataclass(frozen=True, kw_only=True)
class PatchSeq2SeqModel(StackSpec):
    """Encoder-decoder: patches of a grid in, a class for each of its cells out, one by one."""

    kind: ClassVar[str] = "patch-seq2seq"

    rows: int = 2
    """Rows of cells; as many as the task has."""
    columns: int = 2
    """Cells in a row; as many as the task has."""
    patch: int = 7
    """Pixels along each side of a patch; must divide those of an image, or of a cell of it."""
    stem: Stem = "linear"
    """From a patch to a token: linear, or convolutions that see a little of its neighbours too."""
    bridge: Literal["memory", "cells"] = "memory"
    """What the decoder sees: every patch, or the mean of each cell's patches."""
    encoder_layers: int = 3
    decoder_layers: int = 1
    positions: PatchPositionSpec = field(default_factory=GridLearned)
    """Of the patches; the classes that the decoder is fed have a trained vector for each place."""

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "patch", "encoder_layers", "decoder_layers"):
            require(getattr(self, name) >= 1, f"model.{name}", getattr(self, name), "at least 1")
        check_stack(self)

    def check_image(self, height: int, width: int) -> None:
        """Refuse images whose cells, of such a size, it cannot be built for."""
        require_patch(self.patch, height, width)
        require_places(self.positions, self.tokens(height, width))

    @property
    def cells(self) -> int:
        """Classes that an image shows."""
        return self.rows * self.columns

    def tokens(self, height: int, width: int) -> int:
        """Patches of an image whose cells have such a size."""
        return self.cells * (height // self.patch) * (width // self.patch)

    @property
    def attentions(self) -> int:
        """How many attentions there are."""
        return self.encoder_layers + 2 * self.decoder_layers

    @property
    def stack_positions(self) -> dict[str, str]:
        return {"source": write_variant(self.positions), "target": "learned"}


def require_places(positions: PatchPositionSpec, tokens: int) -> None:
    """Refuse a table without a place for every token of an image."""
    if isinstance(positions, Learned):
        rule = f"at least {tokens}, the tokens of an image"
        require(positions.length >= tokens, "model.positions.length", positions.length, rule)
