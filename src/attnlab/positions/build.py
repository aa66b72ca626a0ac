"""From a position spec to the slots it fills."""

from attnlab.positions.learned import LearnedTable
from attnlab.positions.placed import Positions
from attnlab.positions.rotary import RotaryTurn
from attnlab.positions.sinusoidal import SinusoidalWaves
from attnlab.spec import Learned, NoPositions, PositionSpec, Rotary, Sinusoidal


def build_positions(spec: PositionSpec, *, width: int, head_width: int) -> Positions:
    """The positions of one stack of the given widths."""
    match spec:
        case NoPositions():
            return Positions()
        case Sinusoidal():
            return Positions(add=SinusoidalWaves(width=width, base=spec.base))
        case Learned():
            return Positions(add=LearnedTable(width=width, length=spec.length, scale=spec.scale))
        case Rotary():
            return Positions(turn=RotaryTurn(head_width=head_width, base=spec.base))
