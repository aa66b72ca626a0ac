"""Model specs for images: one attention head, and two plain networks beside it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from attnlab.spec.codec import later, write_variant
from attnlab.spec.rules import Checked, Finite, Positive, Rule, require, require_counts, up_to


@dataclass(frozen=True, kw_only=True)
class Augment(Checked, path="task.augment."):
    """Every training image is altered anew at each step, by amounts drawn uniformly up to these limits."""

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


@dataclass(frozen=True, kw_only=True)
class UniformStart(Checked, path="model.positions.", kind="uniform"):
    """Every number drawn uniformly from -limit to limit."""

    limit: Finite = 0.1


@dataclass(frozen=True, kw_only=True)
class SinusoidalStart(Checked, path="model.positions.", kind="sinusoidal"):
    """Sines and cosines of the token's number (Vaswani et al., 2017), times ``scale``."""

    scale: Finite = 1.0


@dataclass(frozen=True, kw_only=True)
class GridStart(Checked, path="model.positions.", kind="sinusoidal-2d"):
    """Sines and cosines of the row in one half of the width, of the column in the other; times scale."""

    scale: Finite = 1.0


@dataclass(frozen=True, kw_only=True)
class ZeroStart(Checked, kind="zero"):
    """All zero: whatever positions say, they have to learn."""


@dataclass(frozen=True, kw_only=True)
class XavierStart(Checked, kind="xavier"):
    """Uniform with the limit sqrt(6 / (tokens + width)) (Glorot and Bengio, 2010)."""


StartSpec = UniformStart | SinusoidalStart | GridStart | ZeroStart | XavierStart


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
    positions: StartSpec = UniformStart()
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
