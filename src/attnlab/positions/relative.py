"""Relative biases by buckets of distances (Raffel et al., "T5", 2020).

    bias(h, i, j) = E[bucket(j - i), h]

Of n = buckets / 2 buckets for each direction the first n / 2 hold one distance each; the others hold ranges
that widen logarithmically up to ``distance``:

    bucket(d) = d                                                              for d < e = n // 2
    bucket(d) = e + floor((n - e) log(d / e) / log(distance / e)), at most n - 1    for d >= e

Keys after the query use buckets n onwards. All layers of a stack share the table, as in the paper, also in
a decoder, where the half for later keys is never asked for.

Beyond trained lengths every distance from ``distance`` on falls into the last bucket: far keys cannot be
told apart. A bucket that no distance of training fell into keeps its first values.
"""

import math
from typing import ClassVar, final

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from attnlab.positions.slots import Bias


@final
class BucketBias(Bias):
    """A trained number for each bucket and head, drawn from N(0, scale^2)."""

    by_offset: ClassVar[bool] = True
    buckets: Tensor

    def __init__(self, *, heads: int, buckets: int, distance: int, scale: float) -> None:
        super().__init__()
        self.distance = distance
        self.table = nn.Parameter(torch.randn(buckets, heads) * scale)
        offsets = range(-distance, distance + 1)
        found = [bucket(abs(d), buckets // 2, distance) + (buckets // 2 if d > 0 else 0) for d in offsets]
        self.register_buffer("buckets", torch.tensor(found), persistent=False)

    def forward(
        self, query_places: Real[Tensor, "*R T"], key_places: Real[Tensor, "*R S"]
    ) -> Float[Tensor, "*R #H T S"]:
        offset = (key_places[..., None, :] - query_places[..., :, None]).long()
        by_offset = self.table.T[:, self.buckets]  # (H, 2 distance + 1)
        return by_offset[:, offset.clamp(-self.distance, self.distance) + self.distance].movedim(0, -3)


def bucket(d: int, buckets: int, distance: int) -> int:
    """The bucket of the distance ``d``, of ``buckets`` in one direction."""
    exact = buckets // 2
    if d < exact:
        return d
    wide = (buckets - exact) * math.log(d / exact) / math.log(distance / exact)
    return min(exact + int(wide), buckets - 1)
