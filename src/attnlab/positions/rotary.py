"""Rotary positions (Su et al., "RoFormer", 2021).

Coordinates 2i and 2i+1 of a query or key at place p are turned by the angle p * base^(-2i/K):

    (x, y) -> (x cos a - y sin a, x sin a + y cos a)

The dot product of a turned query and a turned key depends on their distance alone. Neighbouring
coordinates form a pair, as in the paper; some implementations pair i with i + K/2 instead.

Beyond trained lengths any place can be asked for, and scores of near pairs are those of training wherever
they stand; distances that training never had give slow pairs angles that it never had.
"""

from typing import final

import torch
from jaxtyping import Float, Real
from torch import Tensor

from attnlab.positions.slots import Turn


@final
class RotaryTurn(Turn):
    """Turns queries and keys; nothing is trained."""

    frequency: Tensor

    def __init__(self, *, head_width: int, base: float = 10_000.0) -> None:
        super().__init__()
        frequency = base ** (-torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
        self.register_buffer("frequency", frequency, persistent=False)

    def forward(
        self, vectors: Float[Tensor, "B H T K"], places: Real[Tensor, "*R T"]
    ) -> Float[Tensor, "B H T K"]:
        angle = places[..., None, :, None] * self.frequency  # (R, 1, T, K/2)
        cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
        x, y = vectors[..., 0::2], vectors[..., 1::2]  # (B, H, T, K/2) each
        return torch.stack((x * cos - y * sin, x * sin + y * cos), dim=-1).flatten(-2)
