"""Pooling: one vector of all tokens of a list, whatever its length.

Every pool is called with tokens x (B, T, D) and a mask (B, T) that is true where a token is no padding, or
None where none is. Padding stands at the end of a row. With n the tokens of an example that are no padding,
and minima, maxima and means over these, coordinate by coordinate:

    first       x_0                          the vector of the token in front (Devlin et al., 2019)
    last        x_(n-1)
    mean        1/n sum_t x_t                one token moves it by 1/n
    min, max    min_t x_t, max_t x_t         one token can decide, at any n
    attention   sum_t a_t x_t with a = softmax over t of u . x_t    (Lin et al., 2017, with one row)
    boundary    W [min_t x_t; min_t d_t; mean_t d_t; x_0; x_(n-1)] + b, with d_t = x_(t+1) - x_t
    lowest      min_t f(x_t), a single number; f is given
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlab.specs import Pooling
from attnlab.taps import Tap

Mask = Bool[Tensor, "B T"] | None
Stream = Float[Tensor, "B T D"]


class Pool(nn.Module, ABC):
    """One vector of all tokens."""

    @abstractmethod
    def forward(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B E"]: ...

    def weights(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B T"]:
        """How much of it comes from each token: the same from all that are no padding, unless one alone
        is taken.
        """
        own = x.new_ones(x.shape[:2]) if mask is None else mask.to(x)
        return own / own.sum(dim=1, keepdim=True)


@final
class FirstPool(Pool):
    """The first token."""

    def forward(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B D"]:
        return x[:, 0]

    def weights(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B T"]:
        return _unit_rows(x)[0].expand(x.shape[:2])


@final
class LastPool(Pool):
    """The last token that is no padding."""

    def forward(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B D"]:
        if mask is None:
            return x[:, -1]
        return x[torch.arange(x.shape[0], device=x.device), mask.sum(dim=1) - 1]

    def weights(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B T"]:
        rows = _unit_rows(x)
        return rows[-1].expand(x.shape[:2]) if mask is None else rows[mask.sum(dim=1) - 1]


@final
class MeanPool(Pool):
    """The mean over tokens."""

    def forward(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B D"]:
        if mask is None:
            return x.mean(dim=1)
        return _filled(x, mask, 0.0).sum(dim=1) / mask.sum(dim=1, keepdim=True)


@final
class MinPool(Pool):
    """The least value of each coordinate."""

    def forward(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B D"]:
        return _filled(x, mask, math.inf).amin(dim=1)


@final
class MaxPool(Pool):
    """The greatest value of each coordinate."""

    def forward(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B D"]:
        return _filled(x, mask, -math.inf).amax(dim=1)


@final
class AttentionPool(Pool):
    """A weighted mean; a trained vector u decides about the weights."""

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B D"]:
        weights = _filled(self.score(x), mask, -math.inf).softmax(dim=1)  # (B, T, 1)
        return (weights * _filled(x, mask, 0.0)).sum(dim=1)


@final
class BoundaryPool(Pool):
    """Minimum, minimum and mean of neighbours' differences, first and last: 5 D numbers, mapped to D.

    It compares neighbours for the model: a control, not a discovery. It needs lists of two tokens at least.
    """

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.lowest, self.mean = MinPool(), MeanPool()
        self.first, self.last = FirstPool(), LastPool()
        self.join = nn.Linear(5 * width, width)

    def forward(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B D"]:
        steps = x[:, 1:] - x[:, :-1]
        both = None if mask is None else mask[:, 1:]
        between = self.lowest(steps, both), self.mean(steps, both)
        ends = self.first(x, mask), self.last(x, mask)
        return self.join(torch.cat((self.lowest(x, mask), *between, *ends), dim=1))


@final
class LowestPool(Pool):
    """The lowest of all tokens' own scores: one token can say no for the whole list."""

    def __init__(self, *, score: nn.Module) -> None:
        """``score`` maps a token to one number."""
        super().__init__()
        self.score = score
        self.token_scores = Tap()

    def forward(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B 1"]:
        return self._scores(x, mask).amin(dim=1)

    def weights(self, x: Stream, mask: Mask = None) -> Float[Tensor, "B T"]:
        return _unit_rows(x)[self._scores(x, mask)[..., 0].argmin(dim=1)]

    def _scores(self, x: Stream, mask: Mask) -> Float[Tensor, "B T 1"]:
        return _filled(self.token_scores(self.score(x)), mask, math.inf)


def _unit_rows(x: Stream) -> Float[Tensor, "T T"]:
    """All weight on one token, a row for each."""
    return torch.eye(x.shape[1], dtype=x.dtype, device=x.device)


def _filled(x: Stream, mask: Mask, value: float) -> Float[Tensor, "B T D"]:
    """``value`` in place of padding."""
    return x if mask is None else x.masked_fill(~mask[..., None], value)


def build_pool(pooling: Pooling, width: int) -> Pool:
    """The pool that a spec names, but ``lowest``, which is given a score; of ``cls`` it takes the front."""
    pools: dict[str, Callable[[], Pool]] = {
        **{"cls": FirstPool, "last": LastPool, "mean": MeanPool, "min": MinPool, "max": MaxPool},
        "attention": partial(AttentionPool, width=width),
        "boundary": partial(BoundaryPool, width=width),
    }
    return pools[pooling]()
