"""The spec of a classifier that reads tokens."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from attnlab.spec.positions import PositionSpec, Sinusoidal
from attnlab.spec.rules import require
from attnlab.spec.stacks import StackSpec, check_stack

Pooling = Literal["cls", "mean", "min", "max", "attention", "last", "boundary", "lowest"]
"""Ways to make one vector of all tokens; ``attnlab.pooling`` has the formulas. Of ``cls`` it is that of a
token of its own, which stands in front of the list."""


@dataclass(frozen=True, kw_only=True)
class TokensModel(StackSpec):
    """Encoder: tokens in, one class out."""

    kind: ClassVar[str] = "tokens"

    layers: int = 4
    positions: PositionSpec = field(default_factory=Sinusoidal)
    pooling: Pooling = "mean"
    """How all tokens become one vector."""
    readout: Literal["linear", "mlp"] = "linear"
    """From that vector to the answer: one linear map, or two with a ReLU between them."""
    window: int = 0
    """A token sees tokens at most so many places away; 0 lets it see all."""
    log_scale: int = 0
    """Scores are multiplied by log n / log of this number, n being the keys a query sees; 0: not."""

    def __post_init__(self) -> None:
        require(self.layers >= 1, "model.layers", self.layers, "at least 1")
        require(self.window >= 0, "model.window", self.window, "at least 0")
        require(
            self.log_scale == 0 or self.log_scale >= 2,
            "model.log_scale",
            self.log_scale,
            "at least 2, or 0 for none",
        )
        check_stack(self)

    @property
    def attentions(self) -> int:
        """How many attentions there are."""
        return self.layers
