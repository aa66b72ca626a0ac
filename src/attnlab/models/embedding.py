"""From what a model is given to tokens of its width."""

from abc import ABC, abstractmethod
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlab.positions import Positions


class Embed(nn.Module, ABC):
    """Makes tokens of an input, and knows which of them are padding.

    ``patch`` is the side of the patches that tokens stand for; None where they stand for no patches.
    """

    patch: int | None = None

    @abstractmethod
    def forward(self, given: Tensor) -> Float[Tensor, "B T D"]: ...

    @abstractmethod
    def mask(self, given: Tensor) -> Bool[Tensor, "B T"] | None:
        """True where a token is no padding; None where none is."""

    def patch_positions(self) -> Positions | None:
        """What it adds to the patches of an image by their places; None if it adds nothing."""
        return None


@final
class TokenEmbed(Embed):
    """A trained vector for each kind of token; ``front``, if there is one, stands before all others."""

    def __init__(self, *, tokens: int, width: int, padding: int, front: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, width)
        self.padding = padding
        self.front = front

    def forward(self, given: Int[Tensor, "B L"]) -> Float[Tensor, "B T D"]:
        return self.table(self.tokens(given))

    def tokens(self, given: Int[Tensor, "B L"]) -> Int[Tensor, "B T"]:
        """What is given, with the token in front."""
        return given if self.front is None else F.pad(given, (1, 0), value=self.front)

    def mask(self, given: Int[Tensor, "B L"]) -> Bool[Tensor, "B T"] | None:
        own = self.tokens(given) != self.padding
        if torch.compiler.is_exporting():  # a graph cannot know whether there will be padding
            return own
        return None if bool(own.all()) else own
