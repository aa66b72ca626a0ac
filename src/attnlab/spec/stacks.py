"""What every model of transformer blocks has, and the rules that it keeps."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

from attnlab.spec.codec import later
from attnlab.spec.positions import (
    Alibi,
    PatchPositionSpec,
    PositionSpec,
    Relative,
    Sinusoidal,
    require_positions,
)
from attnlab.spec.rules import require, require_counts
from attnlab.spec.words import write_variant


@dataclass(frozen=True, kw_only=True)
class StackSpec(ABC):
    """The fields that such models share; each has layers of its own, and may allow fewer positions."""

    width: int = 128
    """D, the width of the residual stream."""
    heads: int = 4
    """H, heads in each attention; must divide the width."""
    hidden: int = 512
    """Width of the feed-forward layer."""
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["pre", "post"] = "pre"
    """Layer norm before each sublayer, or after its residual sum."""
    positions: PositionSpec | PatchPositionSpec = field(default_factory=Sinusoidal)
    dropout: float = 0.0
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


def check_stack(spec: StackSpec) -> None:
    """Refuse sizes that do not go together."""
    for name in ("width", "heads", "hidden"):
        require(getattr(spec, name) >= 1, f"model.{name}", getattr(spec, name), "at least 1")
    require(
        spec.width % spec.heads == 0,
        "model.heads",
        spec.heads,
        f"a divisor of model.width {spec.width}, such as {_divisors(spec.width)}",
    )
    require(0 <= spec.dropout < 1, "model.dropout", spec.dropout, "at least 0 and below 1")
    require_counts(spec.head_counts, attentions=spec.attentions, heads=spec.heads)
    _check_indices(spec)
    require_positions(spec.positions, width=spec.width, heads=spec.heads)


def _check_indices(spec: StackSpec) -> None:
    """A number of its own for each head that is left, where each has a bias of its own; else none."""
    own_bias = isinstance(spec.positions, Alibi | Relative)
    wanted = sum(spec.head_counts) if own_bias else 0
    fitting = len(spec.head_indices) == wanted and all(0 <= n < spec.heads for n in spec.head_indices)
    rule = f"{wanted} numbers from 0 to {spec.heads - 1}, one a head that pruning left"
    require(fitting, "model.head_indices", spec.head_indices, rule if wanted else "empty")


def _divisors(number: int) -> str:
    return ", ".join(str(n) for n in range(1, min(number, 64) + 1) if number % n == 0)
