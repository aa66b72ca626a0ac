"""One head of attention over the tokens x (T, D) of one image, and its gradient.

Forward, with the matrix L and the vector l that ``circuits`` makes of query and key, scale included:

    looks   = x L^T + l                       what each token looks for, as a direction among tokens
    scores  = looks x^T                       (T, T), equal to q k^T / sqrt(D) up to a constant per row
    pattern = softmax over keys of scores
    mixed   = pattern x                       what each token gets to see; the value matrix comes later

Backward, from d_mixed, with dX[...] the derivative of the loss by X[...]. ``mixed`` is a product of two
matrices that both depend on x, so that each gets the gradient with the other in place:

    d_pattern[t, s] = sum_d d_mixed[t, d] x[s, d]          d_pattern = d_mixed x^T
    dx[s, d]       += sum_t pattern[t, s] d_mixed[t, d]    dx += pattern^T d_mixed

Through softmax to d_scores (see ``softmax``); ``scores`` is again such a product:

    d_looks = d_scores x,       dx += d_scores^T looks

and ``looks`` is a linear layer: dL = d_looks^T x, dl = sum_t d_looks[t], dx += d_looks L. So x is used
four times, as query, as key, as value and behind L, and its gradient is the sum of four terms.

``pattern_t`` and ``d_pattern_t`` are transposed, keys as rows, for the reason that ``softmax`` gives. First
scores and then the pattern stand in ``pattern_t``; first d_pattern and then d_scores in ``d_pattern_t``.
"""

from jaxtyping import Float

from attnlab.explicit.compiling import Array, inlined
from attnlab.explicit.linear import linear_backward, linear_forward, transpose
from attnlab.explicit.products import add_product
from attnlab.explicit.softmax import softmax_backward, softmax_forward


@inlined
def attention_forward(
    x: Float[Array, "T Dp"],
    look_t: Float[Array, "D Dp"],
    look_bias: Float[Array, "Dp"],
    looks: Float[Array, "T Dp"],
    looks_t: Float[Array, "D Tp"],
    pattern_t: Float[Array, "T Tp"],
    mixed: Float[Array, "T Dp"],
    top: Float[Array, "Tp"],
    total: Float[Array, "Tp"],
) -> None:
    """Fills ``looks`` to ``mixed``; the last two are scratch."""
    linear_forward(x, look_t, look_bias, looks)
    transpose(looks, looks.shape[0], looks_t.shape[0], looks_t)
    pattern_t[:] = 0
    add_product(pattern_t, x, looks_t)
    softmax_forward(pattern_t, top, total)
    mixed[:] = 0
    add_product(mixed, pattern_t.T, x)


@inlined
def attention_backward(
    x: Float[Array, "T Dp"],
    look: Float[Array, "D Dp"],
    looks: Float[Array, "T Dp"],
    pattern_t: Float[Array, "T Tp"],
    d_mixed: Float[Array, "T Dp"],
    d_mixed_t: Float[Array, "D Tp"],
    d_pattern_t: Float[Array, "T Tp"],
    d_looks: Float[Array, "T Dp"],
    total: Float[Array, "Tp"],
    d_look: Float[Array, "D Dp"],
    d_look_bias: Float[Array, "Dp"],
    d_x: Float[Array, "T Dp"],
) -> None:
    """Adds to the last three; ``d_mixed_t`` to ``total`` are scratch."""
    transpose(d_mixed, d_mixed.shape[0], d_mixed_t.shape[0], d_mixed_t)
    d_pattern_t[:] = 0
    add_product(d_pattern_t, x, d_mixed_t)
    add_product(d_x, pattern_t, d_mixed)
    softmax_backward(pattern_t, d_pattern_t, total)
    d_looks[:] = 0
    add_product(d_looks, d_pattern_t.T, x)
    add_product(d_x, d_pattern_t, looks)
    linear_backward(x, look, d_looks, d_look, d_look_bias, d_x)
