"""The feed-forward layer's first half and the mean over tokens, and their gradient.

Forward, with M and m that ``circuits`` makes of value and expand:

    a[t] = mixed[t] M^T + m,    hidden = relu(a),    mean[f] = 1/T sum_t hidden[t, f]

The model's second half (contract) is linear, and so is the mean: both may change places. Applied to one
mean instead of T tokens it costs a T-th, forward and backward; ``circuits`` joins it to the readout.

Backward, from d_mean: every token has the same share in the mean, so the gradient of ``hidden`` is one
vector for all of them, stopped where relu stopped:

    da[t, f] = d_mean[f] / T where hidden[t, f] > 0, else 0

and M, m, mixed form a linear layer.
"""

from jaxtyping import Float

from attnlab.explicit.compiling import Array, inlined
from attnlab.explicit.linear import linear_backward, linear_forward


@inlined
def feed_forward(
    mixed: Float[Array, "T Dp"],
    feed_t: Float[Array, "D Fp"],
    feed_bias: Float[Array, "Fp"],
    hidden: Float[Array, "T Fp"],
    mean: Float[Array, "Fp"],
) -> None:
    """Fills ``hidden`` and ``mean``."""
    linear_forward(mixed, feed_t, feed_bias, hidden)
    zero, share = mean.dtype.type(0), mean.dtype.type(1 / hidden.shape[0])
    mean[:] = zero
    for t in range(hidden.shape[0]):
        for f in range(hidden.shape[1]):
            value = max(hidden[t, f], zero)
            hidden[t, f] = value
            mean[f] += value
    for f in range(mean.shape[0]):
        mean[f] *= share


@inlined
def feed_backward(
    mixed: Float[Array, "T Dp"],
    feed: Float[Array, "F Dp"],
    hidden: Float[Array, "T Fp"],
    d_mean: Float[Array, "Fp"],
    d_feed: Float[Array, "F Dp"],
    d_feed_bias: Float[Array, "Fp"],
    d_mixed: Float[Array, "T Dp"],
) -> None:
    """Adds to the last three; ``hidden`` becomes its own gradient."""
    zero, share = d_mean.dtype.type(0), d_mean.dtype.type(1 / hidden.shape[0])
    for t in range(hidden.shape[0]):
        for f in range(hidden.shape[1]):
            hidden[t, f] = d_mean[f] * share if hidden[t, f] > zero else zero
    linear_backward(mixed, feed, hidden, d_feed, d_feed_bias, d_mixed)
