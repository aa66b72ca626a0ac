"""Specs of transformers that read the patches of an image: one digit, or a grid of digits."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from attnlab.spec.images import SIDE, CNNModel, MLPModel, PatchAttentionModel, require_patch
from attnlab.spec.positions import GridLearned, Learned, PatchPositionSpec
from attnlab.spec.rules import require
from attnlab.spec.stacks import StackSpec, check_stack
from attnlab.spec.tokens import Pooling

Stem = Literal["linear", "conv"]
"""How a patch becomes a token: a linear map of its pixels (Dosovitskiy et al., 2021), or a few small
convolutions whose strides multiply to the patch's side (Xiao et al., 2021)."""


@dataclass(frozen=True, kw_only=True)
class VitModel(StackSpec):
    """Vision transformer (Dosovitskiy et al., 2021): patches of an image in, one class out."""

    kind: ClassVar[str] = "vit"

    patch: int = 4
    """Pixels along each side of a patch; must divide 28."""
    stem: Stem = "linear"
    """From a patch to a token: linear, or convolutions that see a little of its neighbours too."""
    layers: int = 4
    positions: PatchPositionSpec = field(default_factory=GridLearned)
    pooling: Pooling = "mean"
    """How all tokens become one vector; lowest is for two classes only."""

    def __post_init__(self) -> None:
        require(self.layers >= 1, "model.layers", self.layers, "at least 1")
        require_patch(self.patch)
        rule = "another than 'lowest', which tells two classes apart and no more"
        require(self.pooling != "lowest", "model.pooling", self.pooling, rule)
        if self.pooling == "boundary":
            require(
                self.tokens >= 2,
                "model.patch",
                self.patch,
                "smaller, since boundary pooling takes differences",
            )
        check_stack(self)
        require_places(self.positions, self.tokens + self.front)

    @property
    def front(self) -> int:
        """Tokens in front of the patches: one, if it is what is read out."""
        return 1 if self.pooling == "cls" else 0

    @property
    def tokens(self) -> int:
        """Patches of an image."""
        return (SIDE // self.patch) ** 2

    @property
    def attentions(self) -> int:
        """How many attentions there are."""
        return self.layers


ImageModelSpec = PatchAttentionModel | MLPModel | CNNModel | VitModel
"""Models that tell one class of an image."""
IMAGE_MODELS = (PatchAttentionModel, MLPModel, CNNModel, VitModel)


@dataclass(frozen=True, kw_only=True)
class PatchSeq2SeqModel(StackSpec):
    """Encoder-decoder: patches of a grid of digits in, digits out one by one."""

    kind: ClassVar[str] = "patch-seq2seq"

    rows: int = 2
    """Rows of digits; as many as the task has."""
    columns: int = 2
    """Digits in a row; as many as the task has."""
    patch: int = 7
    """Pixels along each side of a patch; must divide 28."""
    stem: Stem = "linear"
    """From a patch to a token: linear, or convolutions that see a little of its neighbours too."""
    bridge: Literal["memory", "cells"] = "memory"
    """What the decoder sees: every patch, or the mean of each cell's patches."""
    encoder_layers: int = 3
    decoder_layers: int = 1
    positions: PatchPositionSpec = field(default_factory=GridLearned)
    """Of the patches; the digits that the decoder is fed have a trained vector for each place."""

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "encoder_layers", "decoder_layers"):
            require(getattr(self, name) >= 1, f"model.{name}", getattr(self, name), "at least 1")
        require_patch(self.patch)
        check_stack(self)
        require_places(self.positions, self.tokens)

    @property
    def cells(self) -> int:
        """Digits of an image."""
        return self.rows * self.columns

    @property
    def tokens(self) -> int:
        """Patches of an image."""
        return self.cells * (SIDE // self.patch) ** 2

    @property
    def attentions(self) -> int:
        """How many attentions there are."""
        return self.encoder_layers + 2 * self.decoder_layers


def require_places(positions: PatchPositionSpec, tokens: int) -> None:
    """Refuse a table without a place for every token of an image."""
    if isinstance(positions, Learned):
        rule = f"at least {tokens}, the tokens of an image"
        require(positions.length >= tokens, "model.positions.length", positions.length, rule)
