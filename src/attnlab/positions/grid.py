"""Places in a grid, for the patches of an image: token p is in row p // columns, column p % columns.

Sinusoidal (as in Wang and Liu, 2019, and He et al., "Masked Autoencoders", 2022): waves of the row fill one
half of the width, waves of the column the other. Any row and any column can be asked for.

Learned: PE(p) = R[row] + C[column]; Dosovitskiy et al. ("ViT", 2021) put the two vectors side by side
instead. Beyond the last trained row the last one serves.
"""

from typing import final

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from attnlab.positions.sinusoidal import SinusoidalWaves
from attnlab.positions.slots import Add


@final
class GridWaves(Add):
    """Fixed waves of row and column; nothing is trained."""

    def __init__(self, *, width: int, columns: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.columns = columns
        self.waves = SinusoidalWaves(width=width // 2, base=base)

    def forward(self, places: Real[Tensor, "*R T"]) -> Float[Tensor, "*R T D"]:
        row, column = self.waves(places // self.columns), self.waves(places % self.columns)
        return torch.cat((row, column), dim=-1)


@final
class GridTable(Add):
    """A vector for each row plus one for each column, drawn from N(0, scale^2) and trained."""

    def __init__(self, *, width: int, rows: int, columns: int, scale: float) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(rows, width) * scale)
        self.columns = nn.Parameter(torch.randn(columns, width) * scale)

    def forward(self, places: Real[Tensor, "*R T"]) -> Float[Tensor, "*R T D"]:
        row, column = places.long() // len(self.columns), places.long() % len(self.columns)
        return self.rows[row.clamp(max=len(self.rows) - 1)] + self.columns[column]
