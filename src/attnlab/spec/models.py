"""Model specs: the shape of a model and the parts it is built from."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from attnlab.spec.codec import later
from attnlab.spec.images import ImageModelSpec
from attnlab.spec.rules import require, require_counts


@dataclass(frozen=True, kw_only=True)
class NoPositions:
    """The model is told no position; only the causal mask may give it away."""

    kind: ClassVar[str] = "none"


@dataclass(frozen=True, kw_only=True)
class Sinusoidal:
    """Fixed sines and cosines, added to the input (Vaswani et al., 2017)."""

    kind: ClassVar[str] = "sinusoidal"
    base: float = 10_000.0

    def __post_init__(self) -> None:
        require(self.base > 1, "model.positions.base", self.base, "above 1")


@dataclass(frozen=True, kw_only=True)
class Learned:
    """A trained vector for each place, added to the input; drawn from N(0, scale^2)."""

    kind: ClassVar[str] = "learned"
    length: int = 64
    scale: float = 0.02

    def __post_init__(self) -> None:
        require(self.length >= 1, "model.positions.length", self.length, "at least 1")
        require(0 <= self.scale < math.inf, "model.positions.scale", self.scale, "at least 0 and finite")


@dataclass(frozen=True, kw_only=True)
class Rotary:
    """Queries and keys are turned by an angle that grows with the place (Su et al., 2021)."""

    kind: ClassVar[str] = "rotary"
    base: float = 10_000.0

    def __post_init__(self) -> None:
        require(self.base > 1, "model.positions.base", self.base, "above 1")


PositionSpec = NoPositions | Sinusoidal | Learned | Rotary


@dataclass(frozen=True, kw_only=True)
class Seq2SeqModel:
    """Encoder-decoder: tokens in, tokens out."""

    kind: ClassVar[str] = "seq2seq"

    width: int = 128
    """D, the width of the residual stream."""
    heads: int = 4
    """H, heads in each attention; must divide the width."""
    encoder_layers: int = 2
    decoder_layers: int = 2
    hidden: int = 512
    """Width of the feed-forward layer."""
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["pre", "post"] = "pre"
    """Layer norm before each sublayer, or after its residual sum."""
    positions: PositionSpec = Sinusoidal()
    dropout: float = 0.0
    head_counts: tuple[int, ...] = later(())
    """Heads that pruning left, an attention each in the order of computation: first those of the encoder,
    then of each decoder layer self and cross. A head keeps the width that ``heads`` gives it. Empty: all.
    """

    def __post_init__(self) -> None:
        for name in ("width", "heads", "encoder_layers", "decoder_layers", "hidden"):
            require(getattr(self, name) >= 1, f"model.{name}", getattr(self, name), "at least 1")
        require(
            self.width % self.heads == 0,
            "model.heads",
            self.heads,
            f"a divisor of model.width {self.width}, such as {_divisors(self.width)}",
        )
        require(0 <= self.dropout < 1, "model.dropout", self.dropout, "at least 0 and below 1")
        require_counts(self.head_counts, attentions=self.attentions, heads=self.heads)
        head_width = self.width // self.heads
        if isinstance(self.positions, Rotary):
            require(
                head_width % 2 == 0,
                "model.heads",
                self.heads,
                f"such that a head's width is even for rotary positions, not {head_width}",
            )
        if isinstance(self.positions, Sinusoidal):
            require(self.width % 2 == 0, "model.width", self.width, "even for sinusoidal positions")

    @property
    def attentions(self) -> int:
        """How many attentions there are."""
        return self.encoder_layers + 2 * self.decoder_layers


def _divisors(number: int) -> str:
    return ", ".join(str(n) for n in range(1, min(number, 64) + 1) if number % n == 0)


ModelSpec = Seq2SeqModel | ImageModelSpec
