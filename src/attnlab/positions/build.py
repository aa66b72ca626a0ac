"""From a position spec to the slots it fills."""

from typing import Literal

from attnlab.positions.alibi import LinearBias
from attnlab.positions.grid import GridTable, GridTurn, GridWaves
from attnlab.positions.learned import LearnedTable
from attnlab.positions.mappings import RandomPlaces, SqueezedPlaces
from attnlab.positions.placed import Positions
from attnlab.positions.relative import BucketBias
from attnlab.positions.rotary import RotaryTurn
from attnlab.positions.sinusoidal import SinusoidalWaves
from attnlab.positions.slots import Mapping
from attnlab.spec import (
    Alibi,
    GridLearned,
    GridPositionSpec,
    GridRotary,
    GridSinusoidal,
    Interpolated,
    Learned,
    NoPositions,
    PatchPositionSpec,
    PositionSpec,
    Randomised,
    Relative,
    Rotary,
    Sinusoidal,
)


def build_positions(spec: PositionSpec, *, width: int, head_width: int) -> Positions:
    """The positions of one stack of the given widths; it has width / head_width heads."""
    heads = width // head_width
    match spec:
        case NoPositions():
            return Positions()
        case Sinusoidal():
            return Positions(add=SinusoidalWaves(width=width, base=spec.base))
        case Learned():
            return Positions(add=LearnedTable(width=width, length=spec.length, scale=spec.scale))
        case Rotary():
            return Positions(turn=RotaryTurn(head_width=head_width, base=spec.base))
        case Alibi():
            return Positions(bias=LinearBias(heads=heads))
        case Relative():
            return Positions(
                bias=BucketBias(heads=heads, buckets=spec.buckets, distance=spec.distance, scale=spec.scale)
            )
        case Randomised():
            places = RandomPlaces(limit=spec.limit)
            return _mapped(spec.inner, places, spec.limit, width=width, head_width=head_width)
        case Interpolated():
            squeezed = SqueezedPlaces(trained=spec.trained)
            return _mapped(spec.inner, squeezed, spec.trained, width=width, head_width=head_width)


def _mapped(
    inner: Literal["sinusoidal", "learned", "rotary"],
    mapping: Mapping,
    length: int,
    *,
    width: int,
    head_width: int,
) -> Positions:
    """What ``inner`` makes of the places that ``mapping`` gives, of which there are ``length``."""
    match inner:
        case "sinusoidal":
            return Positions(add=SinusoidalWaves(width=width), mapping=mapping)
        case "learned":
            return Positions(
                add=LearnedTable(width=width, length=length, scale=Learned.scale), mapping=mapping
            )
        case "rotary":
            return Positions(turn=RotaryTurn(head_width=head_width), mapping=mapping)


def build_patch_positions(
    spec: PatchPositionSpec, *, width: int, head_width: int, rows: int, columns: int, front: int = 0
) -> Positions:
    """The positions of patches, ``front`` tokens before them, by place in the grid or by number."""
    if isinstance(spec, GridPositionSpec):
        return build_grid_positions(
            spec, width=width, head_width=head_width, rows=rows, columns=columns, front=front
        )
    return build_positions(spec, width=width, head_width=head_width)


def build_grid_positions(
    spec: GridPositionSpec, *, width: int, rows: int, columns: int, head_width: int = 0, front: int = 0
) -> Positions:
    """The positions of patches in a grid, ``front`` tokens before them; only turns need ``head_width``."""
    match spec:
        case GridSinusoidal():
            return Positions(add=GridWaves(width=width, columns=columns, base=spec.base, front=front))
        case GridLearned():
            table = GridTable(width=width, rows=rows, columns=columns, scale=spec.scale, front=front)
            return Positions(add=table)
        case GridRotary():
            turn = GridTurn(head_width=head_width, columns=columns, base=spec.base, front=front)
            return Positions(turn=turn)
