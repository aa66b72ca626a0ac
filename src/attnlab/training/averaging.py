"""Exponential moving average of weights.

    average <- average + (1 - d) (weights - average),  d = min(decay, (1 + n) / (10 + n))

after n updates: the average forgets the random start quickly and then smooths over about 1 / (1 - decay)
steps (Polyak and Juditsky, 1992; warm-up as in Abadi et al., TensorFlow).
"""

from copy import deepcopy
from typing import Generic, TypeVar, final

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


@final
class WeightAverage(Generic[M]):
    """Keeps ``model``, an averaged copy of the one being trained."""

    def __init__(self, trained: M, decay: float) -> None:
        self.model = deepcopy(trained).requires_grad_(False)
        self.decay = decay
        self._average: list[Tensor] = list(self.model.parameters())
        self._weights: list[Tensor] = list(trained.parameters())

    @torch.no_grad()
    def update(self, updates: int) -> None:
        """Move towards the trained weights after ``updates`` steps."""
        decay = min(self.decay, (1 + updates) / (10 + updates))
        torch._foreach_lerp_(self._average, self._weights, 1 - decay)
