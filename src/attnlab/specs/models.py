"""Model specs: the shape of a model and the parts it is built from; how images are augmented."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from attnlab.specs.codec import later, write_variant
from attnlab.specs.positions import (
    GridLearned,
    GridStart,
    Learned,
    PatchPositionSpec,
    PositionSpec,
    Sinusoidal,
    SinusoidalStart,
    StartSpec,
    UniformStart,
    differs_by_head,
    require_lasting,
    require_positions,
)
from attnlab.specs.rules import BelowOne, Checked, Finite, Natural, Positive, Rule, require, up_to

MOST_LAYERS = 1000
Layers = Annotated[int, Rule(f"from 1 to {MOST_LAYERS:,}", lambda value: 1 <= value <= MOST_LAYERS)]


@dataclass(frozen=True, kw_only=True)
class Augment(Checked, path="task.augment."):
    """Every training image is augmented at each step, by amounts drawn uniformly up to these limits."""

    shift: Annotated[float, up_to(28)] = 0.0
    """Pixels to each side."""
    rotate: Annotated[float, up_to(180)] = 0.0
    """Degrees to each side."""
    scale: Annotated[float, up_to(0.9)] = 0.0
    """Share of the size, larger or smaller."""
    elastic: Annotated[float, up_to(28)] = 0.0
    """Pixels by which a smooth random field moves parts of the image (Simard et al., 2003)."""

    @property
    def any(self) -> bool:
        return max(self.shift, self.rotate, self.scale, self.elastic) > 0


def require_patch(patch: int, height: int, width: int) -> None:
    """Refuse patches that do not cut an image, or a cell of it, evenly."""
    sides = " and ".join(map(str, dict.fromkeys((height, width))))
    divisors = [n for n in range(1, height + 1) if height % n == 0 and width % n == 0]
    require(patch in divisors, "model.patch", patch, f"a divisor of {sides}: {divisors}")


def require_counts(counts: tuple[int, ...], *, attentions: int, heads: int) -> None:
    """A number of heads for each attention, or none at all."""
    if counts:
        rule = f"{attentions} numbers from 0 to {heads}, one an attention"
        require(len(counts) == attentions, "model.head_counts", counts, rule)
        require(all(0 <= count <= heads for count in counts), "model.head_counts", counts, rule)


@dataclass(frozen=True, kw_only=True)
class PatchAttentionModel(Checked, path="model.", kind="patch-attention"):
    """Patches -> tokens -> one attention -> feed-forward -> mean -> class.

    As it stands it has one head and neither output projection nor residual sums nor layer norm; those four
    can be added one by one.
    """

    width: Positive = 16
    """D, the width of a token."""
    hidden: Positive = 32
    """Width of the feed-forward layer."""
    patch: Positive = 4
    """Pixels along each side of a patch; must divide those of an image."""
    positions: StartSpec = field(default_factory=UniformStart)
    """Where the positions start; they are always trained."""
    gain: Finite = 1.0
    """Multiplies the first weights of queries and keys."""
    end_gain: Finite = 1.0
    """Multiplies the first weights of the feed-forward's second layer and of the readout."""
    heads: Positive = 1
    """H, heads of the attention; must divide the width."""
    projection: bool = False
    """A linear map after the attention."""
    residual: bool = False
    """Sums around attention and feed-forward."""
    norm: bool = False
    """Layer norm before attention, before feed-forward and before the mean."""
    head_counts: tuple[int, ...] = later(())
    """The number of heads that pruning left, which needs a projection; empty: all."""

    attentions: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = f"a divisor of model.width {self.width}"
        require(self.width % self.heads == 0, "model.heads", self.heads, rule)
        require_counts(self.head_counts, attentions=self.attentions, heads=self.heads)
        if self.head_counts:
            require(self.projection, "model.projection", self.projection, "true where heads were removed")
        if isinstance(self.positions, SinusoidalStart):
            require(self.width % 2 == 0, "model.width", self.width, "even for sinusoidal positions")
        if isinstance(self.positions, GridStart):
            require(self.width % 4 == 0, "model.width", self.width, "a multiple of 4 for sinusoidal-2d")

    def check_image(self, height: int, width: int) -> None:
        """Refuse images that it cannot be built for."""
        require_patch(self.patch, height, width)

    def tokens(self, height: int, width: int) -> int:
        return (height // self.patch) * (width // self.patch)

    @property
    def stack_positions(self) -> dict[str, str]:
        """The positions of each stack as a word."""
        return {"patches": write_variant(self.positions)}

    @property
    def plain(self) -> bool:
        """Whether nothing was added to the one bare head."""
        return self.heads == 1 and not (self.projection or self.residual or self.norm)


@dataclass(frozen=True, kw_only=True)
class MLPModel(Checked, path="model.", kind="mlp"):
    """Pixels -> hidden layer -> class."""

    hidden: Positive = 512
    stack_positions: ClassVar[dict[str, str]] = {}

    def check_image(self, height: int, width: int) -> None:
        """It takes images of every size."""


@dataclass(frozen=True, kw_only=True)
class CNNModel(Checked, path="model.", kind="cnn"):
    """Convolution, ReLU, 2 x 2 max pooling -> class."""

    stack_positions: ClassVar[dict[str, str]] = {}
    filters: Positive = 8
    kernel: Annotated[int, Rule("odd, at least 1", lambda n: n % 2 == 1 and n >= 1)] = 3
    """Pixels along each side of a filter; odd, so that images keep their size."""

    def check_image(self, height: int, width: int) -> None:
        """Refuse images that it cannot be built for."""
        side = min(height, width)
        rule = f"smaller than {max(2, side)}, the pixels along a side of an image"
        require(side >= 2 and self.kernel < side, "model.kernel", self.kernel, rule)


@dataclass(frozen=True, kw_only=True)
class StackSpec(Checked, ABC, path="model."):
    """The fields that such models share; each has layers of its own, and may allow fewer positions."""

    width: Positive = 128
    """D, the width of the residual stream."""
    heads: Positive = 4
    """H, heads in each attention; must divide the width."""
    hidden: Positive = 512
    """Width of the feed-forward layer."""
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["pre", "post"] = "pre"
    """Layer norm before each sublayer, or after its residual sum."""
    positions: PositionSpec | PatchPositionSpec = field(default_factory=Sinusoidal)
    dropout: BelowOne = 0.0
    head_counts: tuple[int, ...] = later(())
    """Heads that pruning left, an attention each in the order of computation: first those of the encoder,
    then of each decoder layer self and cross. A head keeps the width that ``heads`` gives it. Empty: all.
    """
    head_indices: tuple[int, ...] = later(())
    """Which heads these were before pruning, where positions give each head a bias of its own."""

    @property
    @abstractmethod
    def attentions(self) -> int:
        """How many attentions there are."""

    @property
    def stack_positions(self) -> dict[str, str]:
        """The positions of each stack as a word."""
        return {"tokens": write_variant(self.positions)}

    def __post_init__(self) -> None:
        super().__post_init__()
        divisors = [str(n) for n in range(1, min(self.width, 64) + 1) if self.width % n == 0]
        rule = f"a divisor of model.width {self.width}, such as {', '.join(divisors)}"
        require(self.width % self.heads == 0, "model.heads", self.heads, rule)
        require_counts(self.head_counts, attentions=self.attentions, heads=self.heads)
        require_positions(self.positions, width=self.width, heads=self.heads)
        # A number of its own for each head that is left, where each has a bias of its own; else none.
        wanted = sum(self.head_counts) if differs_by_head(self.positions) else 0
        fitting = len(self.head_indices) == wanted and all(0 <= n < self.heads for n in self.head_indices)
        rule = f"{wanted} numbers from 0 to {self.heads - 1}, one a head that pruning left"
        require(fitting, "model.head_indices", self.head_indices, rule if wanted else "empty")


LogScale = Annotated[int, Rule("at least 2, or 0 for none", lambda n: n == 0 or n >= 2)]

Pooling = Literal["cls", "mean", "min", "max", "attention", "last", "boundary", "lowest"]
"""Ways to make one vector of all tokens; ``attnlab.pooling`` has the formulas. Of ``cls`` it is that of a
token of its own, which stands in front of the list."""


@dataclass(frozen=True, kw_only=True)
class TokensModel(StackSpec, kind="tokens"):
    """Encoder: tokens in, one class out."""

    layers: Layers = 4
    positions: PositionSpec = field(default_factory=Sinusoidal)
    pooling: Pooling = "mean"
    """How all tokens become one vector."""
    readout: Literal["linear", "mlp"] = "linear"
    """From that vector to the answer: one linear map, or two with a ReLU between them."""
    window: Natural = 0
    """A token sees tokens at most so many places away; 0 lets it see all."""
    log_scale: LogScale = 0
    """Scores are multiplied by log n / log of this number, n being the keys a query sees; 0: not."""

    @property
    def attentions(self) -> int:
        return self.layers


Stem = Literal["linear", "conv"]
"""How a patch becomes a token: a linear map of its pixels (Dosovitskiy et al., 2021), or a few small
convolutions whose strides multiply to the patch's side (Xiao et al., 2021)."""


@dataclass(frozen=True, kw_only=True)
class VitModel(StackSpec, kind="vit"):
    """Vision transformer (Dosovitskiy et al., 2021): patches of an image in, one class out."""

    patch: Positive = 4
    """Pixels along each side of a patch; must divide those of an image, or of a cell of it."""
    stem: Stem = "linear"
    """From a patch to a token: linear, or convolutions that see a little of its neighbours too."""
    layers: Layers = 4
    positions: PatchPositionSpec = field(default_factory=GridLearned)
    pooling: Pooling = "mean"
    """How all tokens become one vector; lowest is for two classes only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "another than 'lowest', which can only distinguish two classes"
        require(self.pooling != "lowest", "model.pooling", self.pooling, rule)

    def check_image(self, height: int, width: int) -> None:
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
        return (height // self.patch) * (width // self.patch)

    @property
    def attentions(self) -> int:
        return self.layers


ImageModelSpec = PatchAttentionModel | MLPModel | CNNModel | VitModel
"""Models that name the class of an image."""
IMAGE_MODELS = (PatchAttentionModel, MLPModel, CNNModel, VitModel)


@dataclass(frozen=True, kw_only=True)
class PatchSeq2SeqModel(StackSpec, kind="patch-seq2seq"):
    """Encoder-decoder: patches of a grid in, a class for each of its cells out, one by one."""

    rows: Positive = 2
    """Rows of cells; as many as the task has."""
    columns: Positive = 2
    """Cells in a row; as many as the task has."""
    patch: Positive = 7
    """Pixels along each side of a patch; must divide those of an image, or of a cell of it."""
    stem: Stem = "linear"
    """From a patch to a token: linear, or convolutions that see a little of its neighbours too."""
    bridge: Literal["memory", "cells"] = "memory"
    """What the decoder sees: every patch, or the mean of each cell's patches."""
    encoder_layers: Layers = 3
    decoder_layers: Layers = 1
    positions: PatchPositionSpec = field(default_factory=GridLearned)
    """Of the patches; the classes that the decoder is fed have a trained vector for each place."""

    def check_image(self, height: int, width: int) -> None:
        require_patch(self.patch, height, width)
        require_places(self.positions, self.tokens(height, width))

    @property
    def cells(self) -> int:
        return self.rows * self.columns

    def tokens(self, height: int, width: int) -> int:
        return self.cells * (height // self.patch) * (width // self.patch)

    @property
    def attentions(self) -> int:
        return self.encoder_layers + 2 * self.decoder_layers

    @property
    def stack_positions(self) -> dict[str, str]:
        return {"source": write_variant(self.positions), "target": "learned"}


def require_places(positions: PatchPositionSpec, tokens: int) -> None:
    """Refuse a table without a place for every token of an image."""
    if isinstance(positions, Learned):
        rule = f"at least {tokens}, the tokens of an image"
        require(positions.length >= tokens, "model.positions.length", positions.length, rule)


@dataclass(frozen=True, kw_only=True)
class Seq2SeqModel(StackSpec, kind="seq2seq"):
    """Encoder-decoder: tokens in, tokens out."""

    encoder_layers: Layers = 2
    decoder_layers: Layers = 2
    positions: PositionSpec = field(default_factory=Sinusoidal)
    log_scale: LogScale = later(0)
    """Scores are multiplied by log n / log of this number, n being the keys a query sees; 0: not."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_lasting(self.positions)

    @property
    def attentions(self) -> int:
        return self.encoder_layers + 2 * self.decoder_layers

    @property
    def stack_positions(self) -> dict[str, str]:
        return dict.fromkeys(("source", "target"), write_variant(self.positions))


ModelSpec = Seq2SeqModel | TokensModel | PatchSeq2SeqModel | ImageModelSpec

BlocksModelSpec = Seq2SeqModel | TokensModel | VitModel | PatchSeq2SeqModel
"""Models of transformer blocks: what ``attnlab.models.parts`` builds, and heads can be taken out of."""
