"""Encoder and decoder blocks: sublayers, each with its residual connection and layer norm.

Pre-norm (Xiong et al., 2020):   x <- x + f(norm(x))
Post-norm (Vaswani et al., 2017): x <- norm(x + f(x))

Which of the two a block uses, or what it leaves away of them, is decided by the ``Residual`` parts that
it is given.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlab.attention import Attention, Memory, NoHeads, Stream
from attnlab.positions import Placed
from attnlab.taps import Tap

Sublayer = Callable[[Tensor], Tensor]
Seen = Bool[Tensor, "T T"] | Bool[Tensor, "#B #H #T T"]
KeyMask = Bool[Tensor, "B 1 1 S"]


class Residual(nn.Module, ABC):
    """A way to add a sublayer to the residual stream. ``out`` is the stream after it."""

    def __init__(self, *, norm: nn.Module, dropout: float) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = nn.Dropout(dropout)
        self.out = Tap()

    def forward(self, x: Stream, sublayer: Sublayer) -> Stream:
        ready = self.out.supplied
        return self.out(self.joined(x, sublayer) if ready is None else ready)

    @abstractmethod
    def joined(self, x: Stream, sublayer: Sublayer) -> Stream:
        """The stream after the sublayer."""


@final
class PreNorm(Residual):
    """x + dropout(f(norm(x)))"""

    def joined(self, x: Stream, sublayer: Sublayer) -> Stream:
        return x + self.dropout(sublayer(self.norm(x)))


@final
class PostNorm(Residual):
    """norm(x + dropout(f(x)))"""

    def joined(self, x: Stream, sublayer: Sublayer) -> Stream:
        return self.norm(x + self.dropout(sublayer(x)))


@final
class NoSum(Residual):
    """dropout(f(norm(x))): the sublayer takes the place of what it was given"""

    def joined(self, x: Stream, sublayer: Sublayer) -> Stream:
        return self.dropout(sublayer(self.norm(x)))


@final
class FeedForward(nn.Module):
    """W_2 f(W_1 x + b_1) + b_2, with a tap at the hidden values."""

    def __init__(self, *, width: int, hidden: int, activation: nn.Module) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.activation = activation
        self.hidden = Tap()
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Stream) -> Stream:
        return self.down(self.hidden(self.activation(self.up(x))))


@final
class EncoderBlock(nn.Module):
    """Self attention, then feed-forward."""

    def __init__(
        self, *, attention: Attention | NoHeads, feed: FeedForward, residual: Callable[[], Residual]
    ) -> None:
        super().__init__()
        self.self = attention
        self.self_residual = residual()
        self.feed = feed
        self.feed_residual = residual()

    def forward(self, x: Stream, *, placed: Placed, visible: Seen | None = None) -> Stream:
        x = self.self_residual(x, lambda x: self.self(x, x, visible=visible, placed=placed))
        return self.feed_residual(x, self.feed)


@final
class DecoderBlock(nn.Module):
    """Causal self attention, cross attention to the memory, then feed-forward."""

    def __init__(
        self,
        *,
        attention: Attention | NoHeads,
        cross: Attention | NoHeads,
        feed: FeedForward,
        residual: Callable[[], Residual],
    ) -> None:
        super().__init__()
        self.self = attention
        self.self_residual = residual()
        self.cross = cross
        self.cross_residual = residual()
        self.feed = feed
        self.feed_residual = residual()

    def forward(
        self,
        x: Stream,
        memory: Memory,
        *,
        placed: Placed,
        visible: Bool[Tensor, "T T"],
        memory_visible: KeyMask | None = None,
        across: Placed | None = None,
    ) -> Stream:
        """``across`` says where queries stand beside the memory; None: that cannot be compared."""
        x = self.self_residual(x, lambda x: self.self(x, x, visible=visible, placed=placed))
        x = self.cross_residual(x, lambda x: self.cross(x, memory, visible=memory_visible, placed=across))
        return self.feed_residual(x, self.feed)

    def open_cache(
        self, memory: Memory, visible: KeyMask | None = None, across: Placed | None = None
    ) -> "BlockCache":
        """Keys and values of the memory, and room for those of the tokens to come."""
        known = None if isinstance(self.cross, NoHeads) else self.cross.keys_values(memory, placed=across)
        return BlockCache(memory=known, visible=visible)

    def step(
        self,
        x: Float[Tensor, "B 1 D"],
        cache: "BlockCache",
        *,
        placed: Placed,
        across: Placed | None = None,
    ) -> Float[Tensor, "B 1 D"]:
        """``forward`` for one further token, reading and extending the cache."""
        start = cache.length

        def attend(x: Tensor) -> Tensor:
            if isinstance(self.self, NoHeads):
                return self.self(x, x)
            q = self.self.queries(x, placed=placed, start=start)
            k, v = cache.extend(*self.self.keys_values(x, placed=placed, start=start))
            return self.self.attend(q, k, v, placed=placed, start=start)

        def look(x: Tensor) -> Tensor:
            if isinstance(self.cross, NoHeads) or cache.memory is None:
                return self.cross(x, x)
            q = self.cross.queries(x, placed=across, start=start)
            return self.cross.attend(q, *cache.memory, visible=cache.visible, placed=across, start=start)

        x = self.self_residual(x, attend)
        x = self.cross_residual(x, look)
        return self.feed_residual(x, self.feed)


@dataclass
class BlockCache:
    """Keys and values one decoder block has already computed (B, H, length, K each)."""

    memory: tuple[Tensor, Tensor] | None
    visible: Tensor | None = None
    own: tuple[Tensor, Tensor] | None = None

    @property
    def length(self) -> int:
        return 0 if self.own is None else self.own[0].shape[2]

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values and return all there are."""
        if self.own is not None:
            k, v = torch.cat((self.own[0], k), dim=2), torch.cat((self.own[1], v), dim=2)
        self.own = (k, v)
        return self.own
