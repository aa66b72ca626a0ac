"""Position specs: how a model is told where a token stands."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from attnlab.spec.rules import require


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
        require_scale(self.scale)


@dataclass(frozen=True, kw_only=True)
class Rotary:
    """Queries and keys are turned by an angle that grows with the place (Su et al., 2021)."""

    kind: ClassVar[str] = "rotary"
    base: float = 10_000.0

    def __post_init__(self) -> None:
        require(self.base > 1, "model.positions.base", self.base, "above 1")


@dataclass(frozen=True, kw_only=True)
class Alibi:
    """Scores fall linearly with the distance, steeper in some heads than in others (Press et al., 2022)."""

    kind: ClassVar[str] = "alibi"


@dataclass(frozen=True, kw_only=True)
class Relative:
    """A trained bias for each head and bucket of distances (Raffel et al., 2020)."""

    kind: ClassVar[str] = "relative"
    buckets: int = 32
    """Half of them for keys before the query, half for keys after it."""
    distance: int = 128
    """From here on all distances share the last bucket."""
    scale: float = 0.02

    def __post_init__(self) -> None:
        even = self.buckets >= 4 and self.buckets % 2 == 0
        require(even, "model.positions.buckets", self.buckets, "even and at least 4")
        least = self.buckets // 4 + 1
        require(
            self.distance >= least,
            "model.positions.distance",
            self.distance,
            f"at least {least} for {self.buckets} buckets",
        )
        require_scale(self.scale)


@dataclass(frozen=True, kw_only=True)
class Randomised:
    """In training tokens stand at random places in rising order (Ruoss et al., 2023)."""

    kind: ClassVar[str] = "randomised"
    inner: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    """What is made of the places."""
    limit: int = 2048
    """How many places there are, and the longest sequence that can be placed."""

    def __post_init__(self) -> None:
        require(self.limit >= 1, "model.positions.limit", self.limit, "at least 1")


@dataclass(frozen=True, kw_only=True)
class Interpolated:
    """Longer sequences are squeezed into the places of ``trained`` tokens (Chen et al., 2023)."""

    kind: ClassVar[str] = "interpolated"
    inner: Literal["sinusoidal", "rotary"] = "rotary"
    """What is made of the places."""
    trained: int = 16
    """The longest sequence of training."""

    def __post_init__(self) -> None:
        require(self.trained >= 1, "model.positions.trained", self.trained, "at least 1")


PositionSpec = NoPositions | Sinusoidal | Learned | Rotary | Alibi | Relative | Randomised | Interpolated


@dataclass(frozen=True, kw_only=True)
class GridSinusoidal:
    """Patches: waves of the row in one half of the width, of the column in the other."""

    kind: ClassVar[str] = "grid-sinusoidal"
    base: float = 10_000.0

    def __post_init__(self) -> None:
        require(self.base > 1, "model.positions.base", self.base, "above 1")


@dataclass(frozen=True, kw_only=True)
class GridLearned:
    """Patches: a trained vector for each row plus one for each column, drawn from N(0, scale^2)."""

    kind: ClassVar[str] = "grid-learned"
    scale: float = 0.02

    def __post_init__(self) -> None:
        require_scale(self.scale)


@dataclass(frozen=True, kw_only=True)
class GridRotary:
    """Patches: one half of a query or key is turned by its row, the other by its column."""

    kind: ClassVar[str] = "grid-rotary"
    base: float = 100.0
    """Lower than for text, since grids are short (Heo et al., 2024)."""

    def __post_init__(self) -> None:
        require(self.base > 1, "model.positions.base", self.base, "above 1")


GridPositionSpec = GridSinusoidal | GridLearned | GridRotary
PatchPositionSpec = (
    NoPositions
    | Sinusoidal
    | Learned
    | Rotary
    | Alibi
    | Relative
    | GridSinusoidal
    | GridLearned
    | GridRotary
)
"""What patches can be told: their place in the grid, or their number, row by row."""


def require_scale(scale: float) -> None:
    """Refuse a scale that cannot be drawn with."""
    require(0 <= scale < math.inf, "model.positions.scale", scale, "at least 0 and finite")


def require_positions(positions: PositionSpec | PatchPositionSpec, *, width: int, heads: int) -> None:
    """Refuse widths that the positions cannot fill: waves and turns come in pairs, in a grid twice."""
    match positions:
        case Randomised() | Interpolated():
            inner: str = positions.inner
        case _:
            inner = positions.kind
    if inner == "rotary":
        head_width = width // heads
        rule = f"such that a head's width is even for rotary positions, not {head_width}"
        require(head_width % 2 == 0, "model.heads", heads, rule)
    if inner == "sinusoidal":
        require(width % 2 == 0, "model.width", width, "even for sinusoidal positions")
    if inner == "grid-sinusoidal":
        require(width % 4 == 0, "model.width", width, "a multiple of 4 for grid-sinusoidal positions")
    if inner == "grid-rotary":
        rule = (
            f"such that a head's width is a multiple of 4 for grid-rotary positions, not {width // heads}"
        )
        require(width // heads % 4 == 0, "model.heads", heads, rule)


def require_lasting(positions: PositionSpec) -> None:
    """Refuse places that move as a sequence grows."""
    rule = "one whose places do not depend on the length, for a decoder does not know how far it will get"
    require(not isinstance(positions, Randomised | Interpolated), "model.positions", positions.kind, rule)
