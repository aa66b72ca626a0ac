"""A map: one weight for each patch of an image, and how even it is.

With p the weights as shares of what all patches get together, the entropy - sum p ln p is at most ln n for
n patches, which an even map has.
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
    rows over its maximum, where a map is a mean over queries: each of them may look at one patch although
    together they look everywhere. ``query`` is the patch that looks, if it is one, as row and column.
    """

    name: str
    of: str
    weights: Float[Tensor, "Y X"]
    keys: int
    front: float = 0.0
    rows: float | None = None
    query: tuple[int, int] | None = None

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

    def to_json(self) -> dict[str, Any]:
        """Names and numbers, without the weights."""
        return {
            "map": self.name,
            "of": self.of,
            "entropy": self.entropy,
            "most_entropy": self.most_entropy,
            "entropy_of_rows": self.rows,
            "peak": self.multiples.max().item(),
            "peak_at": list(divmod(int(self.weights.argmax()), self.weights.shape[1])),
            "front": self.front,
            "query": None if self.query is None else list(self.query),
        }


def entropy(shares: Float[Tensor, "*B S"]) -> Float[Tensor, "*B"]:
    """- sum over s of p ln p, in nats, with 0 ln 0 = 0."""
    return -shares.double().xlogy(shares.double()).sum(dim=-1)
