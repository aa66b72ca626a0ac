"""From the mean of hidden units to classes, and the cross-entropy with the right one.

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

from attnlab.explicit.compiling import Array, inlined, kernel


@inlined
def read_forward(
    mean: Float[Array, "Fp"],
    read: Float[Array, "C Fp"],
    read_bias: Float[Array, "C"],
    logits: Float[Array, "C"],
) -> None:
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
def read_backward(
    mean: Float[Array, "Fp"],
    read: Float[Array, "C Fp"],
    d_logits: Float[Array, "C"],
    d_read: Float[Array, "C Fp"],
    d_read_bias: Float[Array, "C"],
    d_mean: Float[Array, "Fp"],
) -> None:
    """Fills ``d_mean``; adds to ``d_read`` and ``d_read_bias``."""
    d_mean[:] = 0
    for c in range(d_logits.shape[0]):
        d_read_bias[c] += d_logits[c]
        for f in range(mean.shape[0]):
            d_read[c, f] += d_logits[c] * mean[f]
            d_mean[f] += d_logits[c] * read[c, f]
