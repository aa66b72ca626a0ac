"""The layers around attention and the loss, each one step forward and one step back.

**From an image to tokens**, and back to the gradients of the embedding.

Forward, with patch x[t] of pixels, cut row by row, left to right, top to bottom:

    tokens[t] = relu(x[t] W^T + b + positions[t]),      relu(a) = max(a, 0)

Backward: relu passes a gradient where it passed its input and stops it elsewhere,

    da = d_tokens where tokens > 0, else 0

then W and x[t] form a linear layer. b + positions[t] adds to a[t], so d_positions[t] = da[t], and db is
its sum over t. The image itself needs no gradient.

**The feed-forward layer's first half and the mean over tokens**, and their gradient.

Forward, with M and m that ``circuits`` makes of value and expand:

    a[t] = mixed[t] M^T + m,    hidden = relu(a),    mean[f] = 1/T sum_t hidden[t, f]

The model's second half (contract) is linear, and so is the mean: both may change places. Applied to one
mean instead of T tokens it costs a T-th, forward and backward; ``circuits`` joins it to the readout.

Backward, from d_mean: every token has the same share in the mean, so the gradient of ``hidden`` is one
vector for all of them, stopped where relu stopped:

    da[t, f] = d_mean[f] / T where hidden[t, f] > 0, else 0

and M, m, mixed form a linear layer.

**From the mean of hidden units to classes**, and the cross-entropy with the right one.

Forward, with R and r that ``circuits`` makes of contract and readout, and p the softmax of the logits:

    logits[c] = sum_f mean[f] R[c, f] + r[c]
    loss      = -log p[label] = log(sum_c exp(logits[c])) - logits[label]

Backward: the derivative of log-sum-exp by logits[c] is p[c], so for one of B images in a mean over the
batch

    d_logits[c] = (p[c] - [c = label]) / B

and R, r, mean form a linear layer with a single row: dR[c, f] = d_logits[c] mean[f], dr = d_logits,
d_mean[f] = sum_c d_logits[c] R[c, f].
"""

import math

from jaxtyping import Float

from attnlab.explicit.arrays import Merged, Space, Sums
from attnlab.explicit.compiling import Array, inlined, kernel
from attnlab.explicit.linear import linear_backward, linear_forward
from attnlab.explicit.products import add_product


@inlined
def cut_patches(image: Float[Array, "Y X"], patch: int, out: Float[Array, "T Pp"]) -> None:
    across = image.shape[1] // patch
    for t in range(out.shape[0]):
        top, left = t // across * patch, t % across * patch
        for y in range(patch):
            for x in range(patch):
                out[t, y * patch + x] = image[top + y, left + x]


@inlined
def embed_forward(net: Merged, w: int, at: Space) -> None:
    """Fills ``tokens``; the table is positions + bias."""
    table, out = net.table, at.tokens[w]
    for t in range(out.shape[0]):
        for d in range(out.shape[1]):
            out[t, d] = table[t, d]
    add_product(out, at.patches[w], net.embed_t)
    zero = out.dtype.type(0)
    for t in range(out.shape[0]):
        for d in range(out.shape[1]):
            out[t, d] = max(out[t, d], zero)


@inlined
def embed_backward(w: int, at: Space, to: Sums) -> None:
    """Adds to the gradients of weight and positions; stops ``d_tokens`` where relu did."""
    tokens, d_tokens, d_positions = at.tokens[w], at.d_tokens[w], to.positions[w]
    zero = tokens.dtype.type(0)
    for t in range(tokens.shape[0]):
        for d in range(tokens.shape[1]):
            passed = d_tokens[t, d] if tokens[t, d] > zero else zero
            d_tokens[t, d] = passed
            d_positions[t, d] += passed
    add_product(to.embed[w], d_tokens.T, at.patches[w])


@inlined
def feed_forward(net: Merged, w: int, at: Space) -> None:
    """Fills ``hidden`` and ``mean``."""
    hidden, mean = at.hidden[w], at.mean[w]
    linear_forward(at.mixed[w], net.feed_t, net.feed_bias, hidden)
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
def feed_backward(net: Merged, w: int, at: Space, to: Sums) -> None:
    """Fills ``d_mixed``; adds to the gradients of M and m; ``hidden`` becomes its own gradient."""
    hidden, d_mean, d_mixed = at.hidden[w], at.d_mean[w], at.d_mixed[w]
    d_mixed[:] = 0
    zero, share = d_mean.dtype.type(0), d_mean.dtype.type(1 / hidden.shape[0])
    for t in range(hidden.shape[0]):
        for f in range(hidden.shape[1]):
            hidden[t, f] = d_mean[f] * share if hidden[t, f] > zero else zero
    linear_backward(at.mixed[w], net.feed, hidden, to.feed[w], to.feed_bias[w], d_mixed)


@inlined
def read_forward(net: Merged, w: int, at: Space) -> None:
    """Fills ``logits``."""
    mean, read, read_bias, logits = at.mean[w], net.read, net.read_bias, at.logits[w]
    for c in range(logits.shape[0]):
        total = read_bias[c]
        for f in range(mean.shape[0]):
            total += mean[f] * read[c, f]
        logits[c] = total


@kernel
def cross_entropy(logits: Float[Array, "C"], label: int, share: float) -> tuple[float, bool]:
    """Loss, and whether the largest logit is the label's; ``logits`` become ``d_logits``, share = 1/B."""
    best = 0
    for c in range(logits.shape[0]):
        if logits[c] > logits[best]:
            best = c
    top, wanted = logits[best], logits[label]
    total = logits.dtype.type(0)
    for c in range(logits.shape[0]):
        logits[c] = math.exp(logits[c] - top)
        total += logits[c]
    for c in range(logits.shape[0]):
        logits[c] *= share / total
    logits[label] -= share
    return math.log(total) + top - wanted, best == label


@inlined
def read_backward(net: Merged, w: int, at: Space, to: Sums) -> None:
    """Fills ``d_mean``; adds to the gradients of R and r. ``logits`` are ``d_logits`` by now."""
    mean, read, d_logits, d_mean = at.mean[w], net.read, at.logits[w], at.d_mean[w]
    d_read, d_read_bias = to.read[w], to.read_bias[w]
    d_mean[:] = 0
    for c in range(d_logits.shape[0]):
        d_read_bias[c] += d_logits[c]
        for f in range(mean.shape[0]):
            d_read[c, f] += d_logits[c] * mean[f]
            d_mean[f] += d_logits[c] * read[c, f]
