"""What one stack knows of places, and where the tokens of one pass stand.

``Positions`` is the module with its slots. A model asks it once a pass ``positions.at(T, x)`` and hands
what it gets to all blocks, so that all layers see the same places, also where they were drawn.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

from attnlab.positions.slots import Add, Bias, Mapping, Turn, places


@final
@dataclass(frozen=True, eq=False)
class Placed:
    """The places of the tokens of one pass, and the slots that make something of them.

    ``start`` is the number of the first token given, so that decoding may go on in the middle.
    """

    places: Real[Tensor, "R T"]
    add: Add | None = None
    turn: Turn | None = None
    bias: Bias | None = None
    counted: bool = False
    """The places are the tokens' numbers: 0, 1, 2 and so on."""

    def embed(self, tokens: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        """``tokens`` with the vectors of their places added."""
        if self.add is None:
            return tokens
        return tokens + self.add(self._of(start, tokens.shape[1])).to(tokens.dtype)

    def turned(self, vectors: Float[Tensor, "B H T K"], start: int = 0) -> Float[Tensor, "B H T K"]:
        """Queries or keys, turned according to their places."""
        return vectors if self.turn is None else self.turn(vectors, self._of(start, vectors.shape[2]))

    def score_bias(self, queries: slice, keys: slice) -> Float[Tensor, "R #H T S"] | None:
        """What is added to the scores between two ranges of tokens."""
        return None if self.bias is None else self.bias(self.places[:, queries], self.places[:, keys])

    def offset_bias(self, first: int, count: int) -> Float[Tensor, "1 #H N"] | None:
        """What is added to scores at the offsets ``first``, ``first - 1`` and so on, from query to key.

        None if the bias is no function of the offset between two tokens.
        """
        if self.bias is None or not (self.counted and self.bias.by_offset):
            return None
        offsets = first - places(0, count, self.places)[None]
        return self.bias(torch.zeros_like(offsets[:, :1]), offsets)[:, :, 0]

    def _of(self, start: int, count: int) -> Tensor:
        return self.places[:, start : start + count]


@final
class Positions(nn.Module):
    """What one stack knows of places. An empty slot does nothing.

    ``mapping`` says where tokens stand; without it they stand at 0, 1, 2 and so on.
    """

    def __init__(
        self,
        *,
        add: Add | None = None,
        turn: Turn | None = None,
        bias: Bias | None = None,
        mapping: Mapping | None = None,
    ) -> None:
        super().__init__()
        self.add = add
        self.turn = turn
        self.bias = bias
        self.mapping = mapping

    def at(self, length: int, like: Tensor, lengths: Int[Tensor, "B"] | None = None) -> Placed:
        """Places of ``length`` tokens, on the device of ``like``.

        ``lengths`` are the true lengths of padded sequences, for mappings that depend on them.
        """
        where = (
            places(0, length, like)[None] if self.mapping is None else self.mapping(length, like, lengths)
        )
        return Placed(where, self.add, self.turn, self.bias, counted=self.mapping is None)
