"""Rules that every model of transformer blocks keeps."""

from typing import Protocol, runtime_checkable

from attnlab.spec.positions import Alibi, PositionSpec, Relative, require_positions
from attnlab.spec.rules import require, require_counts


@runtime_checkable
class StackSpec(Protocol):
    """What the specs of such models have in common."""

    @property
    def width(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def dropout(self) -> float: ...
    @property
    def positions(self) -> PositionSpec: ...
    @property
    def head_counts(self) -> tuple[int, ...]: ...
    @property
    def head_indices(self) -> tuple[int, ...]: ...
    @property
    def attentions(self) -> int: ...


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
    require_indices(spec)
    require_positions(spec.positions, width=spec.width, heads=spec.heads)


def require_indices(spec: StackSpec) -> None:
    """A number of its own for each head that is left, where each has a bias of its own; else none."""
    own_bias = isinstance(spec.positions, Alibi | Relative)
    wanted = sum(spec.head_counts) if own_bias else 0
    fitting = len(spec.head_indices) == wanted and all(0 <= n < spec.heads for n in spec.head_indices)
    rule = f"{wanted} numbers from 0 to {spec.heads - 1}, one a head that pruning left"
    require(fitting, "model.head_indices", spec.head_indices, rule if wanted else "empty")


def _divisors(number: int) -> str:
    return ", ".join(str(n) for n in range(1, min(number, 64) + 1) if number % n == 0)
