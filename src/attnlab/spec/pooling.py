"""Pooling specs: how the tokens of a list become one vector. ``attnlab.pooling`` has the formulas."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class ClsPooling:
    """The vector of a token of its own, which stands in front of the list."""

    kind: ClassVar[str] = "cls"


@dataclass(frozen=True, kw_only=True)
class MeanPooling:
    """The mean over tokens."""

    kind: ClassVar[str] = "mean"


@dataclass(frozen=True, kw_only=True)
class MinPooling:
    """The least value of each coordinate."""

    kind: ClassVar[str] = "min"


@dataclass(frozen=True, kw_only=True)
class MaxPooling:
    """The greatest value of each coordinate."""

    kind: ClassVar[str] = "max"


@dataclass(frozen=True, kw_only=True)
class AttentionPooling:
    """A mean whose weights a trained vector decides."""

    kind: ClassVar[str] = "attention"


@dataclass(frozen=True, kw_only=True)
class LastPooling:
    """The last token."""

    kind: ClassVar[str] = "last"


@dataclass(frozen=True, kw_only=True)
class BoundaryPooling:
    """Minimum; minimum and mean of neighbours' differences; first and last: it compares for the model."""

    kind: ClassVar[str] = "boundary"


@dataclass(frozen=True, kw_only=True)
class LowestPooling:
    """The readout scores every token for itself, and the lowest score is the list's."""

    kind: ClassVar[str] = "lowest"


PoolSpec = (
    ClsPooling
    | MeanPooling
    | MinPooling
    | MaxPooling
    | AttentionPooling
    | LastPooling
    | BoundaryPooling
    | LowestPooling
)
