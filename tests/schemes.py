"""Every position scheme that a decoder can have, and one that the package does not know."""

import torch
from jaxtyping import Float, Real
from torch import Tensor

from attnlab.positions import Positions, build_positions
from attnlab.positions.slots import Bias
from attnlab.specs import Alibi, Coupled, Learned, NoPositions, PositionSpec, Relative, Rotary, Sinusoidal

SPECS: list[PositionSpec] = [
    NoPositions(),
    Sinusoidal(base=10_000.0),
    Learned(length=3),
    Rotary(base=100.0),
    Alibi(),
    Relative(buckets=6, distance=5, scale=1.0),
    Coupled(inner="learned", limit=3),
    Coupled(inner="rotary", window=2),
    Coupled(inner="relative", buckets=6, distance=5),
]
NAMES = [f"{spec.kind}-{spec.inner}" if isinstance(spec, Coupled) else spec.kind for spec in SPECS]


class Slopes(Bias):
    """-slope[h] |t - s|, as ALiBi has it (Press et al., 2022), in the precision of its slopes."""

    def __init__(self, slopes: Float[Tensor, "H"]) -> None:
        super().__init__()
        self.slopes = slopes

    def forward(
        self, query_places: Real[Tensor, "*R T"], key_places: Real[Tensor, "*R S"]
    ) -> Float[Tensor, "*R #H T S"]:
        distance = (query_places[..., :, None] - key_places[..., None, :]).abs()
        return -self.slopes[:, None, None] * distance[..., None, :, :]


def every_scheme(*, heads: int, head_width: int) -> dict[str, Positions]:
    width = heads * head_width
    known = {
        name: build_positions(spec, width=width, head_width=head_width)
        for name, spec in zip(NAMES, SPECS, strict=True)
    }
    slopes = 0.5 ** torch.arange(1, heads + 1, dtype=torch.float64)
    return {**known, "slopes": Positions(bias=Slopes(slopes))}
