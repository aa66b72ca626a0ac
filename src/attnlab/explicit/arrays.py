"""The arrays a network works in, by name, made once.

Sizes as in ``parameters``, and W workers (threads). A trailing ``p`` marks a length padded by zeros to
whole vectors (see ``products``).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import DTypeLike

from attnlab.explicit.compiling import Array
from attnlab.explicit.parameters import Gradients, Sizes
from attnlab.explicit.products import padded
from attnlab.explicit.tiles import VECTOR


class Merged(NamedTuple):
    """Working copies of the parameters: products of neighbours (see ``circuits``), transposed, padded."""

    embed_t: Float[Array, "P Dp"]
    table: Float[Array, "T Dp"]  # positions + bias
    look: Float[Array, "D Dp"]
    look_t: Float[Array, "D Dp"]
    look_bias: Float[Array, "Dp"]
    feed: Float[Array, "F Dp"]
    feed_t: Float[Array, "D Fp"]
    feed_bias: Float[Array, "Fp"]
    read: Float[Array, "C Fp"]
    read_bias: Float[Array, "C"]
    query: Float[Array, "D Dp"]
    query_t: Float[Array, "D Dp"]
    value: Float[Array, "D Dp"]
    value_t: Float[Array, "D Dp"]
    contract: Float[Array, "D Fp"]
    contract_t: Float[Array, "F Dp"]


class Space(NamedTuple):
    """What one worker keeps of the image it is working on: values forward, gradients backward."""

    patches: Float[Array, "W T Pp"]
    tokens: Float[Array, "W T Dp"]
    looks: Float[Array, "W T Dp"]
    looks_t: Float[Array, "W D Tp"]
    pattern_t: Float[Array, "W T Tp"]
    mixed: Float[Array, "W T Dp"]
    hidden: Float[Array, "W T Fp"]
    mean: Float[Array, "W Fp"]
    logits: Float[Array, "W C"]
    d_mean: Float[Array, "W Fp"]
    d_mixed: Float[Array, "W T Dp"]
    d_mixed_t: Float[Array, "W D Tp"]
    d_pattern_t: Float[Array, "W T Tp"]
    d_looks: Float[Array, "W T Dp"]
    d_tokens: Float[Array, "W T Dp"]
    top: Float[Array, "W Tp"]
    total: Float[Array, "W Tp"]


class Sums(NamedTuple):
    """What one worker has summed over its images: gradients of ``Merged``, the loss, right answers."""

    embed: Float[Array, "W D Pp"]
    positions: Float[Array, "W T Dp"]
    look: Float[Array, "W D Dp"]
    look_bias: Float[Array, "W Dp"]
    feed: Float[Array, "W F Dp"]
    feed_bias: Float[Array, "W Fp"]
    read: Float[Array, "W C Fp"]
    read_bias: Float[Array, "W C"]
    loss: Float[Array, "W"]
    right: Int[Array, "W"]


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Like numpy's, but from the edge of a cache line on, so that no vector of an even row spans two."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + VECTOR, np.uint8)
    start = -raw.ctypes.data % VECTOR
    return raw[start : start + size].view(dtype).reshape(shape)


def make_arrays(sizes: Sizes, dtype: Any, workers: int) -> tuple[Merged, Space, Sums, Gradients]:
    """Everything a network needs beside its parameters, made once."""
    t, p, d, f, c, w = sizes.tokens, sizes.pixels, sizes.width, sizes.hidden, sizes.classes, workers
    tp, pp, dp, fp = (padded(n, np.dtype(dtype).itemsize) for n in (t, p, d, f))

    def make(*shape: int) -> Array:
        return zeros(shape, dtype)

    merged = Merged(
        embed_t=make(p, dp), table=make(t, dp),
        look=make(d, dp), look_t=make(d, dp), look_bias=make(dp),
        feed=make(f, dp), feed_t=make(d, fp), feed_bias=make(fp),
        read=make(c, fp), read_bias=make(c),
        query=make(d, dp), query_t=make(d, dp), value=make(d, dp), value_t=make(d, dp),
        contract=make(d, fp), contract_t=make(f, dp),
    )  # fmt: skip
    space = Space(
        patches=make(w, t, pp), tokens=make(w, t, dp), looks=make(w, t, dp), looks_t=make(w, d, tp),
        pattern_t=make(w, t, tp), mixed=make(w, t, dp), hidden=make(w, t, fp), mean=make(w, fp),
        logits=make(w, c), d_mean=make(w, fp), d_mixed=make(w, t, dp), d_mixed_t=make(w, d, tp),
        d_pattern_t=make(w, t, tp), d_looks=make(w, t, dp), d_tokens=make(w, t, dp),
        top=make(w, tp), total=make(w, tp),
    )  # fmt: skip
    sums = Sums(
        embed=make(w, d, pp), positions=make(w, t, dp), look=make(w, d, dp), look_bias=make(w, dp),
        feed=make(w, f, dp), feed_bias=make(w, fp), read=make(w, c, fp), read_bias=make(w, c),
        loss=zeros((w,), np.float64), right=zeros((w,), np.int64),
    )  # fmt: skip
    gradients = Gradients(
        embed_weight=sums.embed[0], embed_bias=make(d), positions=sums.positions[0],
        query_weight=make(d, dp), query_bias=make(d), key_weight=make(d, dp).T, key_bias=make(d),
        value_weight=make(d, dp), value_bias=make(d),
        expand_weight=make(f, dp), expand_bias=sums.feed_bias[0],
        contract_weight=make(d, fp), contract_bias=make(d),
        readout_weight=make(c, dp), readout_bias=sums.read_bias[0],
    )  # fmt: skip
    return merged, space, sums, gradients
