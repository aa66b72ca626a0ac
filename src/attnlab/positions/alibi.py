"""Linear biases (Press, Smith and Lewis, "Train Short, Test Long" (ALiBi), 2022).

    bias(h, i, j) = -m_h |i - j|,   m_h = 2^(-8 h / H),   h = 1 .. H

The paper has this for decoders, where only keys before the query are seen; here the distance counts in both
directions, so it serves encoders too. For H that is no power of two the paper takes other slopes; here
the formula is always the same.

Beyond trained lengths the line goes on: a far key weighs less than any key of training did.
"""

from typing import ClassVar, final

import torch
from jaxtyping import Float, Real
from torch import Tensor

from attnlab.positions.slots import Bias


@final
class LinearBias(Bias):
    """A slope for each head; nothing is trained."""

    by_offset: ClassVar[bool] = True
    slopes: Tensor

    def __init__(self, *, heads: int) -> None:
        super().__init__()
        slopes = 2 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)
        self.register_buffer("slopes", slopes.float(), persistent=False)

    def forward(
        self, query_places: Real[Tensor, "*R T"], key_places: Real[Tensor, "*R S"]
    ) -> Float[Tensor, "*R #H T S"]:
        i, j = query_places.to(self.slopes.dtype), key_places.to(self.slopes.dtype)
        distance = (i[..., :, None] - j[..., None, :]).abs()
        return -self.slopes[:, None, None] * distance[..., None, :, :]
