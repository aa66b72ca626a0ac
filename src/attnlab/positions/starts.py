"""Where trained positions start: a table (T, D) of first values for the tokens of an image.

The tokens of an image stand in a square grid, row by row: token t is in row t // side, column t % side.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.positions.grid import GridWaves
from attnlab.positions.sinusoidal import SinusoidalWaves
from attnlab.spec import GridStart, SinusoidalStart, StartSpec, UniformStart, XavierStart, ZeroStart


def start_positions(spec: StartSpec, *, tokens: int, width: int) -> Float[Tensor, "T D"]:
    """First values of the positions of ``tokens`` tokens."""
    places = torch.arange(tokens)
    match spec:
        case UniformStart():
            return _uniform(tokens, width, spec.limit)
        case XavierStart():
            return _uniform(tokens, width, math.sqrt(6 / (tokens + width)))
        case ZeroStart():
            return torch.zeros(tokens, width)
        case SinusoidalStart():
            return spec.scale * SinusoidalWaves(width=width)(places).float()
        case GridStart():
            return spec.scale * GridWaves(width=width, columns=math.isqrt(tokens))(places).float()


def _uniform(tokens: int, width: int, limit: float) -> Float[Tensor, "T D"]:
    return torch.empty(tokens, width).uniform_(-limit, limit)
