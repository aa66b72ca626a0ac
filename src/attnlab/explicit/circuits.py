"""Two linear maps in a row are one: merging neighbouring weights before a batch, and its gradient after.

    merged = outer inner,   merged bias = outer (inner bias) + outer bias

Backward, from the merged gradients, summed over the whole batch (the rule for a product of two matrices):

    d_outer = d_merged inner^T + d_bias (inner bias)^T      d_inner      = outer^T d_merged
    d_outer_bias = d_bias                                   d_inner_bias = outer^T d_bias

Merging costs a product of weights a batch and saves a product of tokens for every image, forward and
backward. Three places of the model have no non-linearity between two maps (Elhage et al., 2021, call the
first two the QK and the OV circuit: all that attention does passes through them):

    look: scores.  q k^T = (x Wq^T + bq) (x Wk^T + bk)^T = (x Wq^T + bq) Wk x^T + a constant per row,
          and softmax does not see constants of a row. So L = Wk^T Wq / sqrt(D), l = Wk^T bq / sqrt(D),
          the key's bias has no influence, and its gradient is exactly 0.
    feed: value, then expand.  z = pattern (x Wv^T + bv) = (pattern x) Wv^T + bv, as rows of the pattern sum
          to 1. So M = W1 Wv, m = W1 bv + b1.
    read: contract, then readout, with the mean over tokens moved before both.
          R = Wout W2, r = Wout b2 + bout.
"""

import math

from jaxtyping import Float

from attnlab.explicit.arrays import Gradients, Merged, Parameters, Sums
from attnlab.explicit.compiling import Array, inlined
from attnlab.explicit.linear import transpose
from attnlab.explicit.products import add_product


@inlined
def merge_forward(
    outer: Float[Array, "O K"],
    inner: Float[Array, "K Ip"],
    inner_bias: Float[Array, "K"],
    merged: Float[Array, "O Ip"],
    bias: Float[Array, "Op"],
) -> None:
    """Fills ``merged``; adds outer (inner bias) to ``bias``."""
    merged[:] = 0
    add_product(merged, outer, inner)
    for o in range(outer.shape[0]):
        for k in range(outer.shape[1]):
            bias[o] += outer[o, k] * inner_bias[k]


@inlined
def merge_backward(
    outer: Float[Array, "O K"],
    inner_t: Float[Array, "I Kp"],
    inner_bias: Float[Array, "K"],
    d_merged: Float[Array, "O Ip"],
    d_bias: Float[Array, "Op"],
    d_outer: Float[Array, "O Kp"],
    d_inner: Float[Array, "K Ip"],
    d_inner_bias: Float[Array, "K"],
) -> None:
    """Fills the last three."""
    d_outer[:] = 0
    d_inner_bias[:] = 0
    for o in range(outer.shape[0]):
        for k in range(outer.shape[1]):
            d_outer[o, k] = d_bias[o] * inner_bias[k]
            d_inner_bias[k] += outer[o, k] * d_bias[o]
    add_product(d_outer, d_merged, inner_t)
    d_inner[:] = 0
    add_product(d_inner, outer.T, d_merged)


@inlined
def merge(parameters: Parameters, merged: Merged) -> None:
    """Working copies and merged weights of one batch."""
    own = parameters
    _pad(own.query_weight, merged.query)
    _pad(own.value_weight, merged.value)
    _pad(own.contract_weight, merged.contract)
    width, hidden = own.contract_weight.shape
    transpose(own.embed_weight, width, own.embed_weight.shape[1], merged.embed_t)
    for t in range(own.positions.shape[0]):
        for d in range(width):
            merged.table[t, d] = own.positions[t, d] + own.embed_bias[d]

    scale = own.positions.dtype.type(1 / math.sqrt(width))
    merged.look_bias[:] = 0
    merge_forward(own.key_weight.T, merged.query, own.query_bias, merged.look, merged.look_bias)
    _scale(scale, merged.look, merged.look_bias)
    transpose(merged.look, width, width, merged.look_t)

    for f in range(hidden):
        merged.feed_bias[f] = own.expand_bias[f]
    merge_forward(own.expand_weight, merged.value, own.value_bias, merged.feed, merged.feed_bias)
    transpose(merged.feed, hidden, width, merged.feed_t)

    for c in range(merged.read_bias.shape[0]):
        merged.read_bias[c] = own.readout_bias[c]
    merge_forward(own.readout_weight, merged.contract, own.contract_bias, merged.read, merged.read_bias)


@inlined
def unmerge(parameters: Parameters, merged: Merged, sums: Sums, gradients: Gradients) -> None:
    """Gradients of the parameters from those of the merged weights, which worker 0 holds."""
    own = parameters
    width, hidden = own.contract_weight.shape
    transpose(own.query_weight, width, width, merged.query_t)
    transpose(own.value_weight, width, width, merged.value_t)
    transpose(own.contract_weight, width, hidden, merged.contract_t)

    gradients.embed_bias[:] = 0
    for t in range(own.positions.shape[0]):
        for d in range(width):
            gradients.embed_bias[d] += sums.positions[0, t, d]

    look, look_bias = sums.look[0], sums.look_bias[0]
    _scale(own.positions.dtype.type(1 / math.sqrt(width)), look, look_bias)
    merge_backward(
        own.key_weight.T, merged.query_t, own.query_bias, look, look_bias,
        gradients.key_weight.T, gradients.query_weight, gradients.query_bias,
    )  # fmt: skip
    merge_backward(
        own.expand_weight, merged.value_t, own.value_bias, sums.feed[0], sums.feed_bias[0],
        gradients.expand_weight, gradients.value_weight, gradients.value_bias,
    )  # fmt: skip
    merge_backward(
        own.readout_weight, merged.contract_t, own.contract_bias, sums.read[0], sums.read_bias[0],
        gradients.readout_weight, gradients.contract_weight, gradients.contract_bias,
    )  # fmt: skip


@inlined
def _pad(x: Float[Array, "R C"], out: Float[Array, "R Cp"]) -> None:
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            out[r, c] = x[r, c]


@inlined
def _scale(factor: float, weight: Float[Array, "O I"], bias: Float[Array, "O"]) -> None:
    for o in range(weight.shape[0]):
        bias[o] *= factor
        for i in range(weight.shape[1]):
            weight[o, i] *= factor
