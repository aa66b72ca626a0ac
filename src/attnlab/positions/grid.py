"""Places in a grid, for the patches of an image: patch p is in row p // columns, column p % columns.

Sinusoidal (as in Wang and Liu, 2019, and He et al., "Masked Autoencoders", 2022): waves of the row fill one
half of the width, waves of the column the other. Any row and any column can be asked for.

Learned: PE(p) = R[row] + C[column]; Dosovitskiy et al. ("ViT", 2021) put the two vectors side by side
instead. Beyond the last trained row the last one serves.

Rotary (axial, as in Heo et al., "Rotary Position Embedding for Vision Transformer", 2024): the first half
of a query or key is turned as by rotary positions at its row, the second half at its column. Scores then
depend on how far apart rows and columns are.

``front`` tokens stand before the patches and are in no row and no column: nothing is added to them, and
nothing turns them.
"""

from typing import final

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

from attnlab.positions.schemes import RotaryRotation, SinusoidalWaves
from attnlab.positions.slots import Add, Rotation


@final
class GridWaves(Add):
    """Fixed waves of row and column; nothing is trained."""

    def __init__(self, *, width: int, columns: int, base: float = 10_000.0, front: int = 0) -> None:
        super().__init__()
        self.columns = columns
        self.front = front
        self.waves = SinusoidalWaves(width=width // 2, base=base)

    def forward(self, places: Real[Tensor, "*R T"]) -> Float[Tensor, "*R T D"]:
        row, column, patch = _cells(places, self.columns, self.front)
        return torch.cat((self.waves(row), self.waves(column)), dim=-1) * patch[..., None]


@final
class GridTable(Add):
    """A vector for each row plus one for each column, drawn from N(0, scale^2) and trained."""

    def __init__(self, *, width: int, rows: int, columns: int, scale: float, front: int = 0) -> None:
        super().__init__()
        self.front = front
        self.rows = nn.Parameter(torch.randn(rows, width) * scale)
        self.columns = nn.Parameter(torch.randn(columns, width) * scale)

    def forward(self, places: Real[Tensor, "*R T"]) -> Float[Tensor, "*R T D"]:
        row, column, patch = _cells(places.long(), len(self.columns), self.front)
        both = self.rows[row.clamp(max=len(self.rows) - 1)] + self.columns[column]
        return both if self.front == 0 else both * patch[..., None]


@final
class GridRotation(Rotation):
    """Rotates one half by the row and the other by the column; nothing is trained."""

    def __init__(self, *, head_width: int, columns: int, base: float = 100.0, front: int = 0) -> None:
        super().__init__()
        self.columns = columns
        self.front = front
        self.rotate = RotaryRotation(head_width=head_width // 2, base=base)

    def forward(
        self, vectors: Float[Tensor, "B H T K"], places: Real[Tensor, "*R T"]
    ) -> Float[Tensor, "B H T K"]:
        row, column, _ = _cells(places, self.columns, self.front)  # in front: place 0, the angle 0
        by_row, by_column = vectors.chunk(2, dim=-1)
        return torch.cat((self.rotate(by_row, row), self.rotate(by_column, column)), dim=-1)


def _cells(
    places: Real[Tensor, "*R T"], columns: int, front: int
) -> tuple[Real[Tensor, "*R T"], Real[Tensor, "*R T"], Int[Tensor, "*R T"]]:
    """Row and column of each place, and whether it is a patch; what stands in front is said to be at 0."""
    patches = (places - front).clamp(min=0)
    return patches // columns, patches % columns, (places >= front).long()
