"""The slots through which a model can be told where a token stands.

Places are numbers, a row for each example or one row for all; whole ones unless a mapping says otherwise.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn


class Add(nn.Module, ABC):
    """Slot 1: a vector for each place, added to the input of a stack."""

    @abstractmethod
    def forward(self, places: Real[Tensor, "*R T"]) -> Float[Tensor, "*R T D"]: ...


class Turn(nn.Module, ABC):
    """Slot 2: queries and keys are changed according to their place."""

    @abstractmethod
    def forward(
        self, vectors: Float[Tensor, "B H T K"], places: Real[Tensor, "*R T"]
    ) -> Float[Tensor, "B H T K"]: ...


class Bias(nn.Module, ABC):
    """Slot 3: a number for each pair of places (and head), added to the scores.

    ``by_offset`` says that it depends on key's place minus query's alone.
    """

    by_offset: ClassVar[bool] = False

    @abstractmethod
    def forward(
        self, query_places: Real[Tensor, "*R T"], key_places: Real[Tensor, "*R S"]
    ) -> Float[Tensor, "*R #H T S"]: ...


class Mapping(nn.Module, ABC):
    """Where the tokens of one pass are said to stand, in place of 0, 1, 2 and so on.

    ``lengths`` are the numbers of tokens without padding, so that a padded sequence stands where it would
    stand alone; None if nothing is padded.
    """

    @abstractmethod
    def forward(
        self, length: int, like: Tensor, lengths: Int[Tensor, "B"] | None
    ) -> Real[Tensor, "R T"]: ...


def places(start: int, stop: int, like: Tensor) -> Int[Tensor, "T"]:
    """The places ``start`` to ``stop - 1`` on the device of ``like``."""
    return torch.arange(start, stop, device=like.device)
