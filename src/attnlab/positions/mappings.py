"""Other places than 0, 1, 2: drawn at random in training, or squeezed into the places of training.

**Randomised** (Ruoss et al., "Randomized Positional Encodings Boost Length Generalization of
Transformers", 2023): in training the n tokens of a sequence stand at a random subset of 0 .. limit - 1 in
rising order, drawn anew for each pass, and in a padded batch for each sequence. Evaluation draws nothing:
its places are spread evenly, so that the same input always gives the same answer:

    p_i = floor((i + 1/2) limit / n),   i = 0 .. n - 1

Beyond trained lengths all places up to ``limit`` are known from training, only their gaps become narrower.
More than ``limit`` tokens have no place and are refused.

**Interpolated** (Chen et al., "Extending Context Window of Large Language Models via Positional
Interpolation", 2023), with n0 tokens the longest sequence of training:

    p_i = i min(1, n0 / n)

Beyond trained lengths no place lies outside those of training, but neighbours stand closer than they did.

Both depend on a sequence's own length, never on its padding.
"""

from typing import final

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from attnlab.errors import LabError
from attnlab.positions.slots import Mapping, places


@final
class RandomPlaces(Mapping):
    """A random subset of 0 .. limit - 1 in training, an even one in evaluation."""

    def __init__(self, *, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, length: int, like: Tensor, lengths: Int[Tensor, "B"] | None) -> Real[Tensor, "R T"]:
        own = own_lengths(length, like, lengths)
        if not torch.compiler.is_exporting():  # a graph cannot refuse what it is given
            self._check(int(own.max()))
        return self.drawn(length, own) if self.training else self.even(length, own)

    def _check(self, longest: int) -> None:
        if longest > self.limit:
            raise LabError(
                f"a sequence of {longest:,} tokens cannot be placed: randomised positions reach "
                f"{self.limit:,} tokens (model.positions.limit)"
            )

    def even(self, length: int, own: Int[Tensor, "R 1"]) -> Int[Tensor, "R T"]:
        """Places spread evenly; tokens of padding stand last."""
        spread = (2 * places(0, length, own) + 1) * self.limit // (2 * own)
        return spread.clamp(max=self.limit - 1)

    def drawn(self, length: int, own: Int[Tensor, "R 1"]) -> Int[Tensor, "R T"]:
        """Places drawn without replacement and put in order; tokens of padding stand last."""
        order = torch.rand(len(own), self.limit, device=own.device)
        count = min(length, self.limit)
        chosen = order.topk(count, dim=1).indices
        rest = places(0, count, own) >= own
        chosen = chosen.masked_fill(rest, self.limit).sort(dim=1).values.clamp(max=self.limit - 1)
        return torch.cat((chosen, chosen.new_full((len(own), length - count), self.limit - 1)), dim=1)


@final
class SqueezedPlaces(Mapping):
    """Places of at most ``trained`` tokens for any number of them."""

    def __init__(self, *, trained: int) -> None:
        super().__init__()
        self.trained = trained

    def forward(self, length: int, like: Tensor, lengths: Int[Tensor, "B"] | None) -> Float[Tensor, "R T"]:
        squeeze = (self.trained / own_lengths(length, like, lengths).double()).clamp(max=1)
        return places(0, length, like) * squeeze


def own_lengths(length: int, like: Tensor, lengths: Int[Tensor, "B"] | None) -> Int[Tensor, "R 1"]:
    """True lengths, a row each; one row for all where nothing is padded."""
    if lengths is None:
        return torch.full((1, 1), length, device=like.device)
    return lengths[:, None]
