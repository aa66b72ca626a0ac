"""The classifier: tokens in, one class out.

x      = encoder(embed(input))      (B, T, D)
logits = readout(pool(norm(x)))     (B, V)

Padding is seen by no token and by no pool, so it changes no logit.
"""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlab.blocks import EncoderBlock
from attnlab.model import Model
from attnlab.models.embedding import Embed
from attnlab.pooling import Pool
from attnlab.positions import Positions


@final
class Classifier(Model):
    """``embed`` makes tokens of an input, ``pool`` one vector of all tokens."""

    def __init__(
        self,
        *,
        embed: Embed,
        positions: Positions,
        encoder: Sequence[EncoderBlock],
        norm: nn.Module,
        pool: Pool,
        readout: nn.Module,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed = embed
        self.positions = positions
        self.encoder = nn.ModuleList(encoder)
        self.norm = norm
        self.pool = pool
        self.readout = readout
        self.dropout = nn.Dropout(dropout)

    def forward(self, given: Tensor) -> Float[Tensor, "B V"]:
        """Logits of every class."""
        return self.readout(self.pool(*self._pooled(given)))

    def _pooled(self, given: Tensor) -> tuple[Float[Tensor, "B T D"], Bool[Tensor, "B T"] | None]:
        """What is pooled: the tokens behind all blocks, and which of them are no padding."""
        x, mask = self.embed(given), self.embed.mask(given)
        lengths, visible = (None, None) if mask is None else (mask.sum(dim=1), mask[:, None, None])
        placed = self.positions.at(x.shape[1], x, lengths)
        x = self.dropout(placed.embed(x))
        for block in self.encoder:
            x = block(x, placed=placed, visible=visible)
        return self.norm(x), mask

    @torch.no_grad()
    def read_weights(self, *inputs: Tensor, place: int = 0) -> Float[Tensor, "B T"]:
        """What the pool takes of each token."""
        return self.pool.weights(*self._pooled(inputs[0]))

    @property
    def input_path(self) -> str:
        return "embed"

    @property
    def patch(self) -> int | None:
        return self.embed.patch

    @property
    def read_path(self) -> str:
        return "pool"

    def stack_positions(self) -> dict[str, Positions]:
        own = self.embed.patch_positions()
        return {"tokens": self.positions} if own is None else {"patches": own}

    def input_mask(self, *inputs: Tensor) -> Bool[Tensor, "B T"] | None:
        return self.embed.mask(*inputs)


def seen_keys(scores: Float[Tensor, "B H T S"], own: Bool[Tensor, "B T"] | None) -> Bool[Tensor, "B H T S"]:
    """Which keys each query has seen, by its scores and its ``mask_at``; padding is no query."""
    visible = scores > -torch.inf
    return visible if own is None else visible & own[:, None, :, None]
