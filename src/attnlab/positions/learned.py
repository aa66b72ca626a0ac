"""A trained vector for each place (Gehring et al., 2017; Devlin et al., 2019).

    PE(p) = E[min(p, length - 1)]

Beyond the table the last vector serves, so that a longer sequence is answered, if badly, instead of
refused: places past the end cannot be told apart.
"""

from typing import final

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from attnlab.positions.slots import Add


@final
class LearnedTable(Add):
    """A table of vectors, drawn from N(0, scale^2) and trained with the model."""

    def __init__(self, *, width: int, length: int, scale: float) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(length, width) * scale)

    def forward(self, places: Real[Tensor, "*R T"]) -> Float[Tensor, "*R T D"]:
        return self.table[places.long().clamp(max=len(self.table) - 1)]
