"""Multi-head attention (Vaswani et al., 2017), with a tap at every quantity one may want to see.

For each head, with q, k, v linear in their inputs:

    scores  = c (q k^T / sqrt(K) + bias)        (B, H, T, S), -inf where a key is not visible
    pattern = softmax over keys of scores       (B, H, T, S)
    z       = pattern v                         (B, H, T, K)
    out     = concat over heads of z, times W_o, plus b_o   (B, T, D)

c is 1, or log n / log n0 for a query that sees n keys, which keeps the softmax from thinning out as n grows
(Chiang and Cholak, "Overcoming a Theoretical Limitation of Self-Attention", 2022). A window lets a query
see keys at most so many places away. A query that sees no key, such as padding far from every token, has
a pattern of zeros and z = 0.

Nobody looking at ``scores`` or ``pattern``, torch's fused kernel computes z without forming them, in
parts where there is a window or a bias (``AttentionMask``); somebody looking, or in training with products
in bfloat16, the formulas above are computed as they stand. Both agree to rounding. Dropout is not applied
to the pattern, but to the sublayer's output, as in the paper.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlab.positions import Placed
from attnlab.positions.slots import places
from attnlab.taps import Heads, Tap

SHORT = 2**16
"""Scores of a head that are formed although nobody looks, where the fused kernel is slow."""
ROOM = 2**21
"""Scores of one part, over batch and heads, that may have a mask and a bias of their own."""
ROWS = 64
"""Queries of one part within a window."""

Visible = Bool[Tensor, "T S"] | Bool[Tensor, "#B #H #T S"]
Stream = Float[Tensor, "B T D"]
Memory = Float[Tensor, "B S D"]
Queries = Float[Tensor, "B H T K"]
Keys = Float[Tensor, "B H S K"]
"""Values have the same shape."""


@final
@dataclass(frozen=True, eq=False)
class AttentionMask:
    """What queries see of keys, a range at a time, so that a long sequence never needs a T x S matrix.

    A query's keys are limited by ``visible`` (padding, causality) and by a window: query i sees key j only
    if |i - j| <= window (local attention, as in Beltagy, Peters and Cohan, "Longformer", 2020). Positions
    may add a bias. Both are made for one part of the queries at a time:

        window   parts of some queries with the band of keys around them: T (C + 2 window) scores in all
        bias     parts of so many queries that their scores with all keys stay below ``ROOM``; or, where it
                 depends on the offset alone, all queries at once, each with its window of one row of
                 T + S - 1
        neither  one part, for which torch's fused kernel needs memory linear in T and S

    The first query is token ``start``; the first key is token 0.

    ``own`` are the heads, of those that positions know, that are left in the attention; None: all.
    """

    visible: Visible | None
    placed: Placed | None
    start: int
    window: int
    own: Sequence[int] | None

    def parts(self, shape: tuple[int, int, int, int]) -> Iterator[tuple[slice, slice]]:
        """Queries and the keys they may see, for batch, heads, queries and keys of the given ``shape``."""
        batch, heads, queries, keys = shape
        rows = queries
        if self.window:
            rows = max(ROWS, 2 * self.window)
        elif self.placed is not None and self.placed.bias is not None:
            rows = max(1, ROOM // (batch * heads * keys))
        for first in range(0, queries, max(rows, 1)):
            last = min(first + rows, queries)
            low, high = self.start + first - self.window, self.start + last + self.window
            band = slice(max(0, low), min(keys, high)) if self.window else slice(0, keys)
            yield slice(first, last), band

    def mask(self, queries: slice, keys: slice, like: Tensor) -> Visible | None:
        """Which of the keys each query sees; None if all."""
        seen = None if self.visible is None else self.visible[..., keys]
        if seen is not None and seen.shape[-2] > 1:
            seen = seen[..., queries, :]
        if not self.window:
            return seen
        i = places(self.start + queries.start, self.start + queries.stop, like)
        near = (i[:, None] - places(keys.start, keys.stop, like)).abs() <= self.window
        return near if seen is None else near & seen

    def offset_bias(self, queries: int, keys: int) -> Float[Tensor, "1 #H N"] | None:
        """The bias of all queries in one row of offsets, from the first query and the last key on.

        Query i = start + t and key j = S - 1 - s meet at place t + s of the row, whose offset j - i is
        S - 1 - start - (t + s): for keys in reverse, query t has the window of S numbers from t on. None if
        more than the offset counts.
        """
        if self.placed is None or self.visible is not None or self.window:
            return None
        return self._left(self.placed.offset_bias(keys - 1 - self.start, queries + keys - 1))

    def bias(self, queries: slice, keys: slice) -> Float[Tensor, "B #H T S"] | None:
        """What positions add to the scores."""
        if self.placed is None:
            return None
        rows = slice(self.start + queries.start, self.start + queries.stop)
        return self._left(self.placed.score_bias(rows, keys))

    def _left(self, bias: Tensor | None) -> Tensor | None:
        """The bias of the heads that are left."""
        if bias is None or self.own is None or bias.shape[1] == 1:
            return bias
        return bias[:, torch.tensor(self.own, device=bias.device)]


@final
class Attention(Heads):
    """Multi-head attention from ``x`` (queries) to ``memory`` (keys and values).

    ``visible`` is true where a query may look at a key, (B, 1, 1, S) for a mask of keys alone; None lets
    everything be seen. ``placed`` turns queries and keys and biases scores; cross attention passes None,
    unless the places of queries and keys can be compared.

    ``output`` takes the place of W_o. ``window`` > 0 lets query i see key j only if |i - j| <= window;
    ``log_scale`` is n0, 0 for c = 1. ``own`` names the heads that pruning left, for biases that differ from
    head to head; None: all.
    """

    def __init__(
        self,
        *,
        width: int,
        heads: int,
        head_width: int,
        output: nn.Module | None = None,
        window: int = 0,
        log_scale: int = 0,
        own: Sequence[int] | None = None,
    ) -> None:
        super().__init__(heads=heads, head_width=head_width)
        self.window = window
        self.log_scale = log_scale
        self.own = own
        self.query = nn.Linear(width, heads * head_width)
        self.key = nn.Linear(width, heads * head_width)
        self.value = nn.Linear(width, heads * head_width)
        self.output = nn.Linear(heads * head_width, width) if output is None else output

    def forward(
        self, x: Stream, memory: Memory, *, visible: Visible | None = None, placed: Placed | None = None
    ) -> Stream:
        if self.out.supplied is not None:
            return self.out(self.out.supplied)
        if self.z.supplied is not None:
            return self._project(self.z(self.z.supplied))
        q = self.queries(x, placed=placed)
        k, v = self.keys_values(memory, placed=placed)
        return self.attend(q, k, v, visible=visible, placed=placed)

    def queries(self, x: Stream, *, placed: Placed | None = None, start: int = 0) -> Queries:
        """Queries of the tokens number ``start`` onwards."""
        q = self._split(self.query(x))
        return self.q(q if placed is None else placed.rotate(q, start))

    def keys_values(
        self, memory: Memory, *, placed: Placed | None = None, start: int = 0
    ) -> tuple[Keys, Keys]:
        """Keys and values of the tokens number ``start`` onwards."""
        k, v = self._split(self.key(memory)), self._split(self.value(memory))
        return self.k(k if placed is None else placed.rotate_keys(k, start)), self.v(v)

    def attend(
        self,
        q: Queries,
        k: Keys,
        v: Keys,
        *,
        visible: Visible | None = None,
        placed: Placed | None = None,
        start: int = 0,
    ) -> Stream:
        """The layer's output for given queries, keys and values; the first query is token ``start``."""
        mask = AttentionMask(visible, placed, start, self.window, self.own)
        looked_at = self.scores.active or self.pattern.active
        look = self._explicit if looked_at or _slow_if_fused(q, k) else self._fused
        return self._project(self.z(look(q, k, v, mask)))

    def _explicit(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask) -> Tensor:
        queries, keys = slice(0, q.shape[2]), slice(0, k.shape[2])
        seen, bias = mask.mask(queries, keys, q), mask.bias(queries, keys)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_width)  # (B, H, T, S)
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
        if self.log_scale:
            scores = scores * self._sharpness(seen, k)
        if seen is None:
            return self.pattern(_weights(self.scores(scores))) @ v
        scores = self.scores(scores.masked_fill(~seen, -math.inf))
        blind = ~seen.any(dim=-1, keepdim=True)
        pattern = _weights(scores.masked_fill(blind, 0)).masked_fill(blind, 0)
        return self.pattern(pattern) @ v

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask) -> Tensor:
        parts = list(mask.parts((*q.shape[:3], k.shape[2])))
        if len(parts) == 1:
            return self._part(q, k, v, mask, *parts[0])
        if torch.is_grad_enabled():
            return torch.cat([self._part(q, k, v, mask, *part) for part in parts], dim=2)
        row = mask.offset_bias(q.shape[2], k.shape[2])
        if row is not None:
            return self._slide(q, k, v, row)
        z = torch.empty_like(q)  # small pieces kept between large ones would scatter the memory
        for queries, keys in parts:
            z[:, :, queries] = self._part(q, k, v, mask, queries, keys)
        return z

    def _slide(self, q: Tensor, k: Tensor, v: Tensor, row: Float[Tensor, "1 #H N"]) -> Tensor:
        """z of all queries, whose biases are windows on one row: a view, so no pair takes memory."""
        c = self._sharpness(None, k) if self.log_scale else 1.0
        windows = (row.to(q.dtype) * c).unfold(2, k.shape[2], 1)  # (1, H, T, S)
        return F.scaled_dot_product_attention(q * c, k.flip(2), v.flip(2), attn_mask=windows)

    def _part(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, queries: slice, keys: slice
    ) -> Tensor:
        """z of some queries, from the keys that they may see."""
        q, k, v = q[:, :, queries], k[:, :, keys], v[:, :, keys]
        seen, bias = mask.mask(queries, keys, q), mask.bias(queries, keys)
        if self.log_scale:
            c = self._sharpness(seen, k)
            q, bias = q * c, None if bias is None else bias.to(q.dtype) * c
        if bias is not None:
            bias = bias.to(q.dtype)
            seen = bias if seen is None else bias.masked_fill(~seen, -math.inf)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    def _sharpness(self, seen: Tensor | None, k: Tensor) -> Tensor | float:
        """c = log n / log n0, n being the number of keys that a query sees."""
        if seen is None:
            return math.log(k.shape[2]) / math.log(self.log_scale)
        count = seen.sum(dim=-1, keepdim=True).clamp(min=1).to(k.dtype)
        return count.log() / math.log(self.log_scale)

    def _project(self, z: Queries) -> Stream:
        return self.out(self.output(z.transpose(1, 2).flatten(2)))

    def _split(self, x: Float[Tensor, "B T HK"]) -> Queries:
        return x.view(*x.shape[:2], self.heads, self.head_width).transpose(1, 2)


@final
class NoHeads(nn.Module):
    """What is left of an attention without heads: the bias of its output, the same for every token."""

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))
        self.out = Tap()

    def forward(
        self, x: Stream, memory: Memory, *, visible: Visible | None = None, placed: Placed | None = None
    ) -> Stream:
        """Neither of the arguments makes a difference; they are those of ``Attention``."""
        ready = self.out.supplied
        return self.out(self.bias.expand_as(x) if ready is None else ready)


def _weights(scores: Float[Tensor, "B H T S"]) -> Float[Tensor, "B H T S"]:
    """Their softmax; by way of float32, since torch's own is slow in bfloat16 on short rows."""
    if scores.dtype != torch.bfloat16:
        return scores.softmax(dim=-1)
    # a copy first: torch's kernel that reads one type and writes another is several times slower
    return scores.float().softmax(dim=-1).to(scores.dtype)


def _slow_if_fused(q: Tensor, k: Tensor) -> bool:
    """Whether the formulas as they stand are faster: the kernel's backward pass is slow in bfloat16."""
    learning = q.dtype is torch.bfloat16 and torch.is_grad_enabled()
    return learning and q.shape[2] * k.shape[2] <= SHORT


def padding_mask(tokens: Int[Tensor, "B S"], padding: int) -> Bool[Tensor, "B S"] | None:
    """True where a token is not padding; None where there is no padding."""
    own = tokens != padding
    if torch.compiler.is_exporting():  # a graph cannot know whether there will be padding
        return own
    return None if bool(own.all()) else own


def causal(length: int, like: Tensor) -> Bool[Tensor, "T T"]:
    """Visibility of a decoder: a token sees itself and what stands before it."""
    return torch.ones(length, length, dtype=torch.bool, device=like.device).tril()
