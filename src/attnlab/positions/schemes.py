"""The schemes of a row of tokens, each a class for one of the slots.

**Sines and cosines of falling frequency** (Vaswani et al., "Attention Is All You Need", 2017).

    PE(p, 2i) = sin(p / base^(2i/D)),   PE(p, 2i+1) = cos(p / base^(2i/D))

Sines and cosines alternate, as in the paper. PE(p + k) is a fixed rotation of PE(p), so the dot
product of two encodings depends on their distance alone.

Beyond trained lengths every place has its vector, and fast waves only repeat; slow ones, which have not
been through a period in training, reach values that the model has never seen.

**A trained vector for each place** (Gehring et al., 2017; Devlin et al., 2019).

    PE(p) = E[min(p, length - 1)]

Beyond the table the last vector serves, so that a longer sequence is answered, if badly, instead of
refused: places past the end cannot be told apart.

**Rotary positions** (Su et al., "RoFormer", 2021).

Coordinates 2i and 2i+1 of a query or key at place p are turned by the angle p * base^(-2i/K):

    (x, y) -> (x cos a - y sin a, x sin a + y cos a)

The dot product of a turned query and a turned key depends on their distance alone. Neighbouring
coordinates form a pair, as in the paper; some implementations pair i with i + K/2 instead.

Beyond trained lengths any place can be asked for, and scores of near pairs are those of training wherever
they stand; distances that training never had give slow pairs angles that it never had.

**Linear biases** (Press, Smith and Lewis, "Train Short, Test Long" (ALiBi), 2022).

    bias(h, i, j) = -m_h |i - j|,   m_h = 2^(-8 h / H),   h = 1 .. H

The paper has this for decoders, where only keys before the query are seen; here the distance counts in both
directions, so it serves encoders too. For H that is no power of two the paper takes other slopes; here
the formula is always the same.

Beyond trained lengths the line goes on: a far key weighs less than any key of training did.

**Relative biases by buckets of distances** (Raffel et al., "T5", 2020).

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

from attnlab.positions.slots import Add, Bias, Rotation


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


@final
class LearnedTable(Add):
    """A table of vectors, drawn from N(0, scale^2) and trained with the model."""

    def __init__(self, *, width: int, length: int, scale: float) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(length, width) * scale)

    def forward(self, places: Real[Tensor, "*R T"]) -> Float[Tensor, "*R T D"]:
        return self.table[places.long().clamp(max=len(self.table) - 1)]


@final
class RotaryRotation(Rotation):
    """Rotates queries and keys; nothing is trained."""

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
