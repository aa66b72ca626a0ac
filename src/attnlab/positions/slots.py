"""The slots through which a model can be told where a token stands, and where the tokens of one pass stand.

Places are numbers, a row for each example or one row for all; whole ones unless a mapping says otherwise.
``Positions`` is the module with its slots. A model asks it once a pass ``positions.at(T, x)`` and hands
what it gets to all blocks, so that all layers see the same places, also where they were drawn.

Where places are the columns of a task, those of input and answer say the same thing: then cross attention,
too, turns and biases by them (``Placed.across``).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

Places = Real[Tensor, "*R T"]
KeyPlaces = Real[Tensor, "*Q S"]
"""Of other tokens than the queries there may be a row for each example where queries share one."""
Vectors = Float[Tensor, "B H T K"]
Biases = Float[Tensor, "... #H T S"]


class Add(nn.Module, ABC):
    """Slot 1: a vector for each place, added to the input of a stack."""

    @abstractmethod
    def forward(self, places: Places) -> Float[Tensor, "*R T D"]: ...


class Rotation(nn.Module, ABC):
    """Slot 2: queries and keys are changed according to their place."""

    @abstractmethod
    def forward(self, vectors: Vectors, places: Places) -> Vectors: ...


class Bias(nn.Module, ABC):
    """Slot 3: a number for each pair of places (and head), added to the scores.

    ``by_offset`` says that it depends on key's place minus query's alone.
    """

    by_offset: ClassVar[bool] = False

    @abstractmethod
    def forward(self, query_places: Places, key_places: KeyPlaces) -> Biases: ...


class Mapping(nn.Module, ABC):
    """Where the tokens of one pass are said to stand, in place of 0, 1, 2 and so on.

    ``lengths`` are the numbers of tokens without padding, so that a padded sequence stands where it would
    stand alone; None if nothing is padded. ``tokens`` are those of an input, for mappings that read them;
    None for those of an answer, of which a decoder knows only how many there are.
    """

    couples: ClassVar[bool] = False
    """Whether a place of the input and the same place of an answer belong together."""

    @abstractmethod
    def forward(
        self,
        length: int,
        like: Tensor,
        lengths: Int[Tensor, "B"] | None,
        tokens: Int[Tensor, "B T"] | None = None,
    ) -> Real[Tensor, "R T"]: ...

    def shift(self, length: int, like: Tensor) -> Int[Tensor, "B 1"] | None:
        """By how much each example of ``like``, whose places are below ``length``, is moved in training;
        None: by nothing.
        """
        return None


def places(start: int, stop: int, like: Tensor) -> Int[Tensor, "T"]:
    """The places ``start`` to ``stop - 1`` on the device of ``like``."""
    return torch.arange(start, stop, device=like.device)


@final
@dataclass(frozen=True, eq=False)
class Placed:
    """The places of the tokens of one pass, and the slots that make something of them.

    ``start`` is the number of the first token given, so that decoding may go on in the middle.
    """

    places: Real[Tensor, "R T"]
    add: Add | None = None
    rotation: Rotation | None = None
    bias: Bias | None = None
    counted: bool = False
    """The places are the tokens' numbers: 0, 1, 2 and so on."""
    keys: Real[Tensor, "Q S"] | None = None
    """The places of keys that are other tokens; None: queries and keys are the same tokens."""

    def embed(self, tokens: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        """``tokens`` with the vectors of their places added."""
        if self.add is None:
            return tokens
        return tokens + self.add(self._of(start, tokens.shape[1])).to(tokens.dtype)

    def rotate(self, vectors: Vectors, start: int = 0) -> Vectors:
        """Queries or keys, rotated according to their places."""
        if self.rotation is None:
            return vectors
        return self.rotation(vectors, self._of(start, vectors.shape[2]))

    def rotate_keys(self, vectors: Vectors, start: int = 0) -> Vectors:
        """Keys, rotated according to their places."""
        if self.rotation is None:
            return vectors
        return self.rotation(vectors, self._key_places[:, start : start + vectors.shape[2]])

    def moved(self, shift: Int[Tensor, "B 1"] | None) -> "Placed":
        """All tokens of an example so many places further on; None: where they are."""
        return self if shift is None else replace(self, places=self.places + shift)

    def across(self, memory: "Placed") -> "Placed":
        """The same queries, which look at the tokens of ``memory``."""
        return replace(self, keys=memory.places)

    def score_bias(self, queries: slice, keys: slice) -> Float[Tensor, "B #H T S"] | None:
        """What is added to the scores between two ranges of tokens."""
        if self.bias is None:
            return None
        return self.bias(self.places[:, queries], self._key_places[:, keys])

    def offset_bias(self, first: int, count: int) -> Float[Tensor, "1 #H N"] | None:
        """What is added to scores at the offsets ``first``, ``first - 1`` and so on, from query to key.

        None if the bias is no function of the offset between two tokens.
        """
        if self.bias is None or not (self.counted and self.bias.by_offset):
            return None
        offsets = first - places(0, count, self.places)[None]
        return self.bias(torch.zeros_like(offsets[:, :1]), offsets)[:, :, 0]

    @property
    def _key_places(self) -> Tensor:
        return self.places if self.keys is None else self.keys

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
        rotation: Rotation | None = None,
        bias: Bias | None = None,
        mapping: Mapping | None = None,
    ) -> None:
        super().__init__()
        self.add = add
        self.rotation = rotation
        self.bias = bias
        self.mapping = mapping

    @property
    def couples(self) -> bool:
        """Whether places of the input and of an answer belong together, in slots that compare places."""
        compares = self.rotation is not None or self.bias is not None
        return compares and self.mapping is not None and self.mapping.couples

    def at(
        self,
        length: int,
        like: Tensor,
        lengths: Int[Tensor, "B"] | None = None,
        tokens: Int[Tensor, "B T"] | None = None,
    ) -> Placed:
        """Places of ``length`` tokens, on the device of ``like``.

        ``lengths`` are the true lengths of padded sequences and ``tokens`` those of an input, for mappings
        that depend on them.
        """
        if self.mapping is None:
            return Placed(places(0, length, like)[None], self.add, self.rotation, self.bias, counted=True)
        found = self.mapping(length, like, lengths, tokens)
        return Placed(found, self.add, self.rotation, self.bias)

    def shift(self, length: int, like: Tensor) -> Int[Tensor, "B 1"] | None:
        """By how much to move each example of ``like`` in training, drawn anew; ``length`` is behind the
        last of its places. None: by nothing.
        """
        return None if self.mapping is None else self.mapping.shift(length, like)
