"""Model specs for images: one attention head, and two plain networks beside it."""

import math
from dataclasses import dataclass
from typing import ClassVar

from attnlab.spec.codec import later
from attnlab.spec.rules import require, require_counts
from attnlab.spec.words import write_variant


def require_patch(patch: int, height: int, width: int) -> None:
    """Refuse patches that do not cut an image, or a cell of it, evenly."""
    sides = " and ".join(map(str, dict.fromkeys((height, width))))
    divisors = [n for n in range(1, height + 1) if height % n == 0 and width % n == 0]
    require(patch in divisors, "model.patch", patch, f"a divisor of {sides}: {divisors}")


@dataclass(frozen=True, kw_only=True)
class UniformStart:
    """Every number drawn uniformly from -limit to limit."""

    kind: ClassVar[str] = "uniform"
    limit: float = 0.1

    def __post_init__(self) -> None:
        require(0 <= self.limit < math.inf, "model.positions.limit", self.limit, "at least 0 and finite")


@dataclass(frozen=True, kw_only=True)
class SinusoidalStart:
    """Sines and cosines of the token's number (Vaswani et al., 2017), times ``scale``."""

    kind: ClassVar[str] = "sinusoidal"
    scale: float = 1.0

    def __post_init__(self) -> None:
        require(0 <= self.scale < math.inf, "model.positions.scale", self.scale, "at least 0 and finite")


@dataclass(frozen=True, kw_only=True)
class GridStart:
    """Sines and cosines of the row in one half of the width, of the column in the other; times scale."""

    kind: ClassVar[str] = "sinusoidal-2d"
    scale: float = 1.0

    def __post_init__(self) -> None:
        require(0 <= self.scale < math.inf, "model.positions.scale", self.scale, "at least 0 and finite")


@dataclass(frozen=True, kw_only=True)
class ZeroStart:
    """All zero: whatever positions say, they have to learn."""

    kind: ClassVar[str] = "zero"


@dataclass(frozen=True, kw_only=True)
class XavierStart:
    """Uniform with the limit sqrt(6 / (tokens + width)) (Glorot and Bengio, 2010)."""

    kind: ClassVar[str] = "xavier"


StartSpec = UniformStart | SinusoidalStart | GridStart | ZeroStart | XavierStart


@dataclass(frozen=True, kw_only=True)
class PatchAttentionModel:
    """Patches -> tokens -> one attention -> feed-forward -> mean -> class.

    As it stands it has one head and neither output projection nor residual sums nor layer norm; those four
    can be added one by one.
    """

    kind: ClassVar[str] = "patch-attention"

    width: int = 16
    """D, the width of a token."""
    hidden: int = 32
    """Width of the feed-forward layer."""
    patch: int = 4
    """Pixels along each side of a patch; must divide those of an image."""
    positions: StartSpec = UniformStart()
    """Where the positions start; they are always trained."""
    gain: float = 1.0
    """Multiplies the first weights of queries and keys."""
    end_gain: float = 1.0
    """Multiplies the first weights of the feed-forward's second layer and of the readout."""
    heads: int = 1
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
        for name in ("width", "hidden", "patch", "heads"):
            require(getattr(self, name) >= 1, f"model.{name}", getattr(self, name), "at least 1")
        require(
            self.width % self.heads == 0,
            "model.heads",
            self.heads,
            f"a divisor of model.width {self.width}",
        )
        require_counts(self.head_counts, attentions=self.attentions, heads=self.heads)
        if self.head_counts:
            require(self.projection, "model.projection", self.projection, "true where heads were removed")
        for name in ("gain", "end_gain"):
            value = getattr(self, name)
            require(0 <= value < math.inf, f"model.{name}", value, "at least 0 and finite")
        if isinstance(self.positions, SinusoidalStart):
            require(self.width % 2 == 0, "model.width", self.width, "even for sinusoidal positions")
        if isinstance(self.positions, GridStart):
            require(self.width % 4 == 0, "model.width", self.width, "a multiple of 4 for sinusoidal-2d")

    def check_image(self, height: int, width: int) -> None:
        """Refuse images that it cannot be built for."""
        require_patch(self.patch, height, width)

    def tokens(self, height: int, width: int) -> int:
        """T, patches of an image."""
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
class MLPModel:
    """Pixels -> hidden layer -> class."""

    kind: ClassVar[str] = "mlp"
    hidden: int = 512
    stack_positions: ClassVar[dict[str, str]] = {}

    def __post_init__(self) -> None:
        require(self.hidden >= 1, "model.hidden", self.hidden, "at least 1")

    def check_image(self, height: int, width: int) -> None:
        """It takes images of every size."""


@dataclass(frozen=True, kw_only=True)
class CNNModel:
    """Convolution, ReLU, 2 x 2 max pooling -> class."""

    kind: ClassVar[str] = "cnn"
    stack_positions: ClassVar[dict[str, str]] = {}
    filters: int = 8
    kernel: int = 3
    """Pixels along each side of a filter; odd, so that images keep their size."""

    def __post_init__(self) -> None:
        require(self.filters >= 1, "model.filters", self.filters, "at least 1")
        require(self.kernel % 2 == 1 and self.kernel >= 1, "model.kernel", self.kernel, "odd, at least 1")

    def check_image(self, height: int, width: int) -> None:
        """Refuse images that it cannot be built for."""
        side = min(height, width)
        rule = f"smaller than {max(2, side)}, the pixels along a side of an image"
        require(side >= 2 and self.kernel < side, "model.kernel", self.kernel, rule)
