"""Positions of a kind, which no run has; not public."""

from typing import TYPE_CHECKING

from attnlab.analysis.position_kinds import check_kind
from attnlab.lazy import Later

if TYPE_CHECKING:
    from attnlab.analysis import positions
    from attnlab.analysis.positions import PositionsResult
else:
    positions = Later("attnlab.analysis.positions")


def kind_positions(
    kind: str, *, length: int = 0, trained: int = 16, width: int = 64, heads: int = 4, columns: int = 7
) -> "PositionsResult":
    """What positions such as ``rotary:base=100`` look like: for sequences of up to ``trained`` tokens in
    training, a model of ``width`` with ``heads``, or a grid of ``columns`` patches side by side.
    """
    spec = check_kind(kind, trained=trained, width=width, heads=heads, columns=columns)
    places = positions.kind_places(spec, trained=trained, width=width, heads=heads, columns=columns)
    return positions.describe_positions(kind, [places], length=length)
