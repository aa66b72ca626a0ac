"""A map: one weight for each patch of an image, and how even it is.

With p the weights as shares of what all patches get together, the entropy - sum p ln p is at most ln n for
n patches, which an even map has. Of one patch both are 0: its map is as even as it is sharp, so that no
share of the maximum can be told.
"""

import math
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class PatchMap:
    """``weights`` of patches; ``keys`` is S, the number of keys that they were chosen from.

    ``front`` is the weight on keys that are no patches. ``rows`` is the mean entropy of the queries' own
    rows over its maximum, where a map is a mean over queries of several keys: each of them may look at one
    patch although together they look everywhere. ``query`` is the patch that looks, if it is one, as row
    and column. ``on_digit`` is the share of what patches get that goes to the digit that is being said,
    where there are several.
    """

    name: str
    of: str
    weights: Float[Tensor, "Y X"]
    keys: int
    front: float = 0.0
    rows: float | None = None
    query: tuple[int, int] | None = None
    on_digit: float | None = None

    @property
    def multiples(self) -> Float[Tensor, "Y X"]:
        """Weights times S: 1 everywhere if attention is uniform."""
        return self.weights * self.keys

    @property
    def entropy(self) -> float:
        """In nats; 0 also where no patch gets anything."""
        total = self.weights.sum()
        return entropy(self.weights.flatten() / total).item() if total > 0 else 0.0

    @property
    def most_entropy(self) -> float:
        """What an even map has."""
        return math.log(self.weights.numel())

    @property
    def evenness(self) -> float | None:
        """The entropy over that of an even map; None of one patch, where both are 0."""
        return self.entropy / self.most_entropy if self.weights.numel() > 1 else None

    def to_json(self) -> dict[str, Any]:
        """Names and numbers, without the weights."""
        return {
            "map": self.name,
            "of": self.of,
            "entropy": self.entropy,
            "most_entropy": self.most_entropy,
            "evenness": self.evenness,
            "entropy_of_rows": self.rows,
            "peak": self.multiples.max().item(),
            "peak_at": list(divmod(int(self.weights.argmax()), self.weights.shape[1])),
            "front": self.front,
            "query": None if self.query is None else list(self.query),
            "on_digit": self.on_digit,
        }


def share_of_cell(weights: Float[Tensor, "Y X"], rows: int, columns: int, place: int) -> float | None:
    """What part of all weight goes to one of ``rows`` x ``columns`` cells, counted row by row.

    None where there is one cell, which gets all, or where a patch lies in two of them.
    """
    high, wide = weights.shape
    if rows * columns == 1 or high % rows or wide % columns:
        return None
    cells = weights.reshape(rows, high // rows, columns, wide // columns).sum(dim=(1, 3)).flatten()
    return (cells[place] / cells.sum()).item()


def entropy(shares: Float[Tensor, "*B S"]) -> Float[Tensor, "*B"]:
    """- sum over s of p ln p, in nats, with 0 ln 0 = 0; never below 0 by rounding, and never -0."""
    total = shares.double().xlogy(shares.double()).sum(dim=-1)
    return (0.0 - total).clamp(min=0.0)
