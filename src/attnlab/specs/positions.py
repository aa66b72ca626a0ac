"""Position specs: how a model is told where a token stands."""

from dataclasses import dataclass
from typing import Annotated, Literal

from attnlab.specs.rules import AboveOne, Checked, Finite, Natural, Positive, Rule, require


@dataclass(frozen=True, kw_only=True)
class NoPositions(Checked, kind="none"):
    """The model is told no position; only the causal mask may give it away."""


@dataclass(frozen=True, kw_only=True)
class Sinusoidal(Checked, path="model.positions.", kind="sinusoidal"):
    """Fixed sines and cosines, added to the input (Vaswani et al., 2017)."""

    base: AboveOne = 10_000.0


@dataclass(frozen=True, kw_only=True)
class Learned(Checked, path="model.positions.", kind="learned"):
    """A trained vector for each place, added to the input; drawn from N(0, scale^2)."""

    length: Positive = 64
    scale: Finite = 0.02


@dataclass(frozen=True, kw_only=True)
class Rotary(Checked, path="model.positions.", kind="rotary"):
    """Queries and keys are rotated by an angle that grows with the position (Su et al., 2021)."""

    base: AboveOne = 10_000.0


@dataclass(frozen=True, kw_only=True)
class Alibi(Checked, kind="alibi"):
    """Scores fall linearly with the distance, steeper in some heads than in others (Press et al., 2022)."""


def require_distance(distance: int, buckets: int) -> None:
    """Refuse a distance that leaves nothing for the buckets that hold several distances."""
    least = buckets // 4 + 1
    rule = f"at least {least} for {buckets} buckets"
    require(distance >= least, "model.positions.distance", distance, rule)


@dataclass(frozen=True, kw_only=True)
class Relative(Checked, path="model.positions.", kind="relative"):
    """A trained bias for each head and bucket of distances (Raffel et al., 2020)."""

    buckets: Annotated[int, Rule("even and at least 4", lambda n: n >= 4 and n % 2 == 0)] = 32
    """Half of them for keys before the query, half for keys after it."""
    distance: int = 128
    """From here on all distances share the last bucket."""
    scale: Finite = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        require_distance(self.distance, self.buckets)


@dataclass(frozen=True, kw_only=True)
class Randomised(Checked, path="model.positions.", kind="randomised"):
    """In training tokens stand at random places in rising order (Ruoss et al., 2023)."""

    inner: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    """What is made of the places."""
    limit: Positive = 2048
    """How many places there are, and the longest sequence that can be placed."""


@dataclass(frozen=True, kw_only=True)
class Interpolated(Checked, path="model.positions.", kind="interpolated"):
    """Longer sequences are squeezed into the places of ``trained`` tokens (Chen et al., 2023)."""

    inner: Literal["sinusoidal", "rotary"] = "rotary"
    """What is made of the places."""
    trained: Positive = 16
    """The longest sequence of training."""


@dataclass(frozen=True)
class Columns:
    """How a task counts the columns that its tokens stand in; the default is one by one.

    A token of ``breaks`` ends a run of the input, and the count begins again behind it. The first token of
    each run stands in column ``lead``, that of an answer in column 0.

    >>> spec("addition", digits=10, shortest=1).task.coupling
    Columns(breaks=(10,), lead=1)
    """

    breaks: tuple[int, ...] = ()
    lead: int = 0


@dataclass(frozen=True, kw_only=True)
class Coupled(Checked, path="model.positions.", kind="coupled"):
    """Tokens stand at the column that the task says, in training moved at random (Cho et al., 2024;
    McLeish et al., 2024)."""

    inner: Literal["learned", "sinusoidal", "rotary", "relative"] = "learned"
    """What is made of the columns."""
    limit: Positive = 256
    """In training an example is moved to anywhere below this column."""
    buckets: Annotated[int, Rule("even and at least 4", lambda n: n >= 4 and n % 2 == 0)] = 16
    """Of relative ones: half of them for columns before the query's, half for those after it."""
    distance: int = 8
    """Of relative ones: from here on all distances share the last bucket."""
    window: Natural = 0
    """A token sees tokens at most so many columns away; 0 lets it see all."""
    scale: Finite = 1.0
    """Trained numbers are drawn from N(0, scale^2)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_distance(self.distance, self.buckets)


PositionSpec = (
    NoPositions | Sinusoidal | Learned | Rotary | Alibi | Relative | Randomised | Interpolated | Coupled
)


@dataclass(frozen=True, kw_only=True)
class GridSinusoidal(Checked, path="model.positions.", kind="grid-sinusoidal"):
    """Patches: waves of the row in one half of the width, of the column in the other."""

    base: AboveOne = 10_000.0


@dataclass(frozen=True, kw_only=True)
class GridLearned(Checked, path="model.positions.", kind="grid-learned"):
    """Patches: a trained vector for each row plus one for each column, drawn from N(0, scale^2)."""

    scale: Finite = 0.02


@dataclass(frozen=True, kw_only=True)
class GridRotary(Checked, path="model.positions.", kind="grid-rotary"):
    """Patches: one half of a query or key is rotated by its row, the other by its column."""

    base: AboveOne = 100.0
    """Lower than for text, since grids are short (Heo et al., 2024)."""


GridPositionSpec = GridSinusoidal | GridLearned | GridRotary
PatchPositionSpec = NoPositions | Sinusoidal | Learned | Rotary | Alibi | Relative | GridPositionSpec
"""What patches can be told: their place in the grid, or their number, row by row."""


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
"""Where the trained positions of patch attention start."""


def require_positions(positions: PositionSpec | PatchPositionSpec, *, width: int, heads: int) -> None:
    """Refuse widths that the positions cannot fill: waves and turns come in pairs, in a grid twice."""
    inner: str = (
        positions.inner if isinstance(positions, Randomised | Interpolated | Coupled) else positions.kind
    )
    factor, words = (4, "a multiple of 4") if inner.startswith("grid-") else (2, "even")
    if inner.endswith("rotary"):
        rule = f"such that a head's width is {words} for {inner} positions, not {width // heads}"
        require(width // heads % factor == 0, "model.heads", heads, rule)
    if inner.endswith("sinusoidal"):
        require(width % factor == 0, "model.width", width, f"{words} for {inner} positions")


def differs_by_head(positions: PositionSpec | PatchPositionSpec) -> bool:
    """Whether each head has a bias of its own."""
    relative = isinstance(positions, Coupled) and positions.inner == "relative"
    return relative or isinstance(positions, Alibi | Relative)


def require_lasting(positions: PositionSpec) -> None:
    """Refuse places that move as a sequence grows."""
    rule = "one whose places do not depend on the length, for a decoder does not know how far it will get"
    require(not isinstance(positions, Randomised | Interpolated), "model.positions", positions.kind, rule)
