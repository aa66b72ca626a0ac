"""Pooling: one vector of all tokens."""

from typing import final

from jaxtyping import Float
from torch import Tensor, nn


@final
class MeanPool(nn.Module):
    """The mean over tokens."""

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        return x.mean(dim=1)
