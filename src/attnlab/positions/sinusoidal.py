"""Sines and cosines of falling frequency (Vaswani et al., "Attention Is All You Need", 2017).

    PE(p, 2i) = sin(p / base^(2i/D)),   PE(p, 2i+1) = cos(p / base^(2i/D))

Sines and cosines alternate, as in the paper. PE(p + k) is a fixed rotation of PE(p), so the dot
product of two encodings depends on their distance alone.

Beyond trained lengths every place has its vector, and fast waves only repeat; slow ones, which have not
been through a period in training, reach values that the model has never seen.
"""

from typing import final

import torch
from jaxtyping import Float, Real
from torch import Tensor

from attnlab.positions.slots import Add


@final
class SinusoidalWaves(Add):
    """Fixed waves added to the input; nothing is trained."""

    frequency: Tensor

    def __init__(self, *, width: int, base: float = 10_000.0) -> None:
        super().__init__()
        frequency = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        self.register_buffer("frequency", frequency, persistent=False)

    def forward(self, places: Real[Tensor, "*R T"]) -> Float[Tensor, "*R T D"]:
        angle = places[..., None] * self.frequency  # (R, T, D/2)
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)  # (R, T, D)
