"""The classifier: tokens in, one class out.

x      = encoder(embed(input))      (B, T, D)
logits = readout(pool(norm(x)))     (B, V)

Padding is seen by no token and by no pool, so it changes no logit.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlab.attention import padding_mask
from attnlab.blocks import EncoderBlock
from attnlab.model import Model, closing_streams
from attnlab.models.parts import Parts
from attnlab.pooling import LowestPool, Pool, build_pool
from attnlab.positions import Positions
from attnlab.specs import Columns, Tokens, TokensModel


class Embed(nn.Module, ABC):
    """Makes tokens of an input, and knows which of them are padding.

    ``patch`` is the side of the patches that tokens stand for; None where they stand for no patches.
    """

    patch: int | None = None

    @abstractmethod
    def forward(self, given: Tensor) -> Float[Tensor, "B T D"]: ...

    @abstractmethod
    def mask(self, given: Tensor) -> Bool[Tensor, "B T"] | None:
        """True where a token is not padding; None where there is no padding."""

    def ids(self, given: Tensor) -> Int[Tensor, "B T"] | None:
        """The numbers of its tokens, where they have such."""
        return None

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
        return self.table(self.ids(given))

    def ids(self, given: Int[Tensor, "B L"]) -> Int[Tensor, "B T"]:
        """What is given, with the token in front."""
        return given if self.front is None else F.pad(given, (1, 0), value=self.front)

    def mask(self, given: Int[Tensor, "B L"]) -> Bool[Tensor, "B T"] | None:
        return padding_mask(self.ids(given), self.padding)


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
        placed = self.positions.at(x.shape[1], x, lengths, self.embed.ids(given))
        placed = placed.moved(self.positions.shift(x.shape[1], x))
        x = self.dropout(placed.embed(x))
        for block in self.encoder:
            x = block(x, placed=placed, visible=visible)
        return self.norm(x), mask

    def early_streams(self) -> list[str]:
        return closing_streams(self.encoder, "encoder")

    def early(self, stream: Float[Tensor, "B T D"], *inputs: Tensor) -> Float[Tensor, "B V"]:
        """readout(pool(norm(stream)))"""
        return self.readout(self.pool(self.norm(stream), self.embed.mask(inputs[0])))

    @torch.no_grad()
    def read_weights(self, *inputs: Tensor, place: int = 0) -> Float[Tensor, "B T"]:
        """What the pool takes of each token."""
        return self.pool.weights(*self._pooled(inputs[0]))

    @property
    def input_path(self) -> str:
        return "embed"

    @property
    def patch_size(self) -> int | None:
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


@final
class Evidence(nn.Module):
    """Logits (-s, s) of the number s that speaks for the second class."""

    def forward(self, s: Float[Tensor, "B 1"]) -> Float[Tensor, "B 2"]:
        return torch.cat((-s, s), dim=1)


def build_tokens(spec: TokensModel, vocabulary: int, tokens: Tokens, columns: Columns) -> Classifier:
    """The model of ``spec``; weights are drawn later. A token in front is a run by itself."""
    front = tokens.front if spec.pooling == "cls" else None
    if front is not None:
        columns = replace(columns, breaks=(*columns.breaks, front))
    parts = Parts(spec, window=spec.window, log_scale=spec.log_scale, counted=columns)
    pool, readout = _end(spec, vocabulary)
    return Classifier(
        embed=TokenEmbed(tokens=tokens.count, width=spec.width, padding=tokens.padding, front=front),
        positions=parts.positions(),
        encoder=parts.encoder(spec.layers),
        norm=parts.closing_norm(),
        pool=pool,
        readout=readout,
        dropout=spec.dropout,
    )


def _end(spec: TokensModel, vocabulary: int) -> tuple[Pool, nn.Module]:
    """Pool and readout; of lowest pooling the readout is inside, once a token."""
    if spec.pooling == "lowest":
        return LowestPool(score=_readout(spec, 1)), Evidence()
    return build_pool(spec.pooling, spec.width), _readout(spec, vocabulary)


def _readout(spec: TokensModel, outputs: int) -> nn.Module:
    last = nn.Linear(spec.width, outputs)
    if spec.readout == "linear":
        return last
    return nn.Sequential(nn.Linear(spec.width, spec.width), nn.ReLU(), last)
