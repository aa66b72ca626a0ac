"""The three slots through which a model can be told where a token stands."""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class Add(nn.Module, ABC):
    """Slot 1: a vector for each place, added to the input of a stack."""

    @abstractmethod
    def forward(self, places: Int[Tensor, "T"]) -> Float[Tensor, "T D"]: ...


class Turn(nn.Module, ABC):
    """Slot 2: queries and keys are changed according to their place."""

    @abstractmethod
    def forward(
        self, vectors: Float[Tensor, "B H T K"], places: Int[Tensor, "T"]
    ) -> Float[Tensor, "B H T K"]: ...


class Bias(nn.Module, ABC):
    """Slot 3: a number for each pair of places (and head), added to the scores."""

    @abstractmethod
    def forward(
        self, query_places: Int[Tensor, "T"], key_places: Int[Tensor, "S"]
    ) -> Float[Tensor, "#H T S"]: ...


@final
class Positions(nn.Module):
    """What one stack knows of places. An empty slot does nothing.

    ``places`` are whatever integers the caller says, so that decoding may start in the middle of a
    sequence and an encoding may be asked for places beyond those it was trained on.
    """

    def __init__(
        self, *, add: Add | None = None, turn: Turn | None = None, bias: Bias | None = None
    ) -> None:
        super().__init__()
        self.add = add
        self.turn = turn
        self.bias = bias

    def embed(self, tokens: Float[Tensor, "B T D"], places: Int[Tensor, "T"]) -> Float[Tensor, "B T D"]:
        return tokens if self.add is None else tokens + self.add(places).to(tokens.dtype)

    def turned(
        self, vectors: Float[Tensor, "B H T K"], places: Int[Tensor, "T"]
    ) -> Float[Tensor, "B H T K"]:
        return vectors if self.turn is None else self.turn(vectors, places)

    def score_bias(
        self, query_places: Int[Tensor, "T"], key_places: Int[Tensor, "S"]
    ) -> Float[Tensor, "#H T S"] | None:
        return None if self.bias is None else self.bias(query_places, key_places)


def places(start: int, stop: int, like: Tensor) -> Int[Tensor, "T"]:
    """The places ``start`` to ``stop - 1`` on the device of ``like``."""
    return torch.arange(start, stop, device=like.device)
