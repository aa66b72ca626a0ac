"""What queries see of keys, a range at a time, so that a long sequence never needs a T x S matrix.

A query's keys are limited by ``visible`` (padding, causality) and by a window: query i sees key j only if
|i - j| <= window (local attention, as in Beltagy, Peters and Cohan, "Longformer", 2020). Positions may
add a bias. Both are made for one part of the queries at a time:

    window   parts of some queries with the band of keys around them: T (C + 2 window) scores in all
    bias     parts of so many queries that their scores with all keys stay below ``ROOM``; or, where it
             depends on the offset alone, all queries at once, each with its window of one row of T + S - 1
    neither  one part, for which torch's fused kernel needs memory linear in T and S
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from jaxtyping import Bool, Float
from torch import Tensor

from attnlab.positions import Placed
from attnlab.positions.slots import places

ROOM = 2**21
"""Scores of one part, over batch and heads, that may have a mask and a bias of their own."""
ROWS = 64
"""Queries of one part within a window."""

Visible = Bool[Tensor, "T S"] | Bool[Tensor, "#B #H #T S"]


@final
@dataclass(frozen=True, eq=False)
class Sight:
    """The first query is token ``start``; the first key is token 0.

    ``own`` are the heads, of those that positions know, that are left in the attention; None: all.
    """

    visible: Visible | None
    placed: Placed | None
    start: int
    window: int
    own: Sequence[int] | None

    def parts(self, shape: tuple[int, int, int, int]) -> Iterator[tuple[slice, slice]]:
        """Queries and the keys they may see, for batch, heads, queries and keys of the given ``shape``."""
        batch, heads, queries, keys = shape
        rows = queries
        if self.window:
            rows = max(ROWS, 2 * self.window)
        elif self.placed is not None and self.placed.bias is not None:
            rows = max(1, ROOM // (batch * heads * keys))
        for first in range(0, queries, max(rows, 1)):
            last = min(first + rows, queries)
            yield slice(first, last), self._band(first, last, keys)

    def _band(self, first: int, last: int, keys: int) -> slice:
        if not self.window:
            return slice(0, keys)
        return slice(max(0, self.start + first - self.window), min(keys, self.start + last + self.window))

    def mask(self, queries: slice, keys: slice, like: Tensor) -> Visible | None:
        """Which of the keys each query sees; None if all."""
        seen = None if self.visible is None else self.visible[..., keys]
        if seen is not None and seen.shape[-2] > 1:
            seen = seen[..., queries, :]
        if not self.window:
            return seen
        i = places(self.start + queries.start, self.start + queries.stop, like)
        near = (i[:, None] - places(keys.start, keys.stop, like)).abs() <= self.window
        return near if seen is None else near & seen

    def offset_bias(self, queries: int, keys: int) -> Float[Tensor, "1 #H N"] | None:
        """The bias of all queries in one row of offsets, from the first query and the last key on.

        Query i = start + t and key j = S - 1 - s meet at place t + s of the row, whose offset j - i is
        S - 1 - start - (t + s): for keys in reverse, query t has the window of S numbers from t on. None if
        more than the offset counts.
        """
        if self.placed is None or self.visible is not None or self.window:
            return None
        row = self.placed.offset_bias(keys - 1 - self.start, queries + keys - 1)
        return None if row is None else self._left(row)

    def bias(self, queries: slice, keys: slice) -> Float[Tensor, "R #H T S"] | None:
        """What positions add to the scores."""
        if self.placed is None:
            return None
        rows = slice(self.start + queries.start, self.start + queries.stop)
        bias = self.placed.score_bias(rows, keys)
        return None if bias is None else self._left(bias)

    def _left(self, bias: Tensor) -> Tensor:
        """The bias of the heads that are left."""
        return bias if self.own is None or bias.shape[1] == 1 else bias[:, list(self.own)]
