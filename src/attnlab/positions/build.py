"""From a position spec to the slots it fills, and to the first values of an image's trained positions."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab import specs
from attnlab.positions import schemes
from attnlab.positions.slots import Positions

ONE_BY_ONE = specs.Columns()


def build_positions(
    spec: specs.PositionSpec | specs.GridPositionSpec,
    *,
    width: int,
    head_width: int = 0,
    rows: int = 0,
    columns: int = 0,
    front: int = 0,
    counted: specs.Columns = ONE_BY_ONE,
) -> Positions:
    """The positions of one stack; biases need ``head_width``, as rotations do. ``counted`` is how a
    task counts columns.

    Patches stand in a grid of so many ``rows`` and ``columns``, ``front`` tokens before them.
    """
    grid = {"columns": columns, "front": front}
    match spec:
        case specs.NoPositions():
            return Positions()
        case specs.Sinusoidal():
            return Positions(add=schemes.SinusoidalWaves(width=width, base=spec.base))
        case specs.Learned():
            return Positions(add=schemes.LearnedTable(width=width, length=spec.length, scale=spec.scale))
        case specs.Rotary():
            return Positions(rotation=schemes.RotaryRotation(head_width=head_width, base=spec.base))
        case specs.Alibi():
            return Positions(bias=schemes.LinearBias(heads=width // head_width))
        case specs.Relative():
            heads = width // head_width
            return Positions(
                bias=schemes.BucketBias(
                    heads=heads, buckets=spec.buckets, distance=spec.distance, scale=spec.scale
                )
            )
        case specs.Randomised() | specs.Interpolated():
            drawn = isinstance(spec, specs.Randomised)
            length = spec.limit if isinstance(spec, specs.Randomised) else spec.trained
            inners = (specs.Sinusoidal(), specs.Learned(length=length), specs.Rotary())
            (inner,) = (each for each in inners if each.kind == spec.inner)
            made = build_positions(inner, width=width, head_width=head_width)
            made.mapping = (
                schemes.RandomPlaces(limit=length) if drawn else schemes.SqueezedPlaces(trained=length)
            )
            return made
        case specs.Coupled():
            return _build_coupled(spec, counted, width=width, head_width=head_width)
        case specs.GridSinusoidal():
            return Positions(add=schemes.GridWaves(width=width, base=spec.base, **grid))
        case specs.GridLearned():
            return Positions(add=schemes.GridTable(width=width, rows=rows, scale=spec.scale, **grid))
        case specs.GridRotary():
            return Positions(rotation=schemes.GridRotation(head_width=head_width, base=spec.base, **grid))


def _build_coupled(
    spec: specs.Coupled, counted: specs.Columns, *, width: int, head_width: int
) -> Positions:
    inners = (
        specs.Learned(length=spec.limit, scale=spec.scale),
        specs.Sinusoidal(),
        specs.Rotary(),
        specs.Relative(buckets=spec.buckets, distance=spec.distance, scale=spec.scale),
    )
    (inner,) = (each for each in inners if each.kind == spec.inner)
    made = build_positions(inner, width=width, head_width=head_width)
    made.mapping = schemes.ColumnPlaces(limit=spec.limit, breaks=counted.breaks, lead=counted.lead)
    if spec.window:
        made.bias = schemes.WindowBias(window=spec.window, inner=made.bias)
    return made


def start_positions(spec: specs.StartSpec, *, tokens: int, width: int) -> Float[Tensor, "T D"]:
    """First values of the trained positions of an image's tokens, which stand in a square, row by row."""
    places = torch.arange(tokens)
    match spec:
        case specs.UniformStart():
            return torch.empty(tokens, width).uniform_(-spec.limit, spec.limit)
        case specs.XavierStart():
            limit = math.sqrt(6 / (tokens + width))
            return torch.empty(tokens, width).uniform_(-limit, limit)
        case specs.ZeroStart():
            return torch.zeros(tokens, width)
        case specs.SinusoidalStart():
            return spec.scale * schemes.SinusoidalWaves(width=width)(places).float()
        case specs.GridStart():
            return spec.scale * schemes.GridWaves(width=width, columns=math.isqrt(tokens))(places).float()
