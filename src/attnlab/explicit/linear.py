"""A linear layer and its gradients.

Forward, row by row of x (T, I), with the weight W (O, I) stored as torch stores it:

    out[t, o] = sum_i x[t, i] W[o, i] + b[o]          out = x W^T + b

Backward. Let dX stand for the derivative of the loss by X, an array shaped like X. A weight acts on the
loss through every row it touched, and an input through every output it fed; the chain rule sums over
those:

    dW[o, i] = sum_t d_out[t, o] x[t, i]              dW = d_out^T x
    db[o]    = sum_t d_out[t, o]
    dx[t, i] = sum_o d_out[t, o] W[o, i]              dx = d_out W

All functions of this folder that end in ``backward`` *add* to gradients, because a tensor used twice gets
the sum of what both uses say.
"""

from jaxtyping import Float

from attnlab.explicit.compiling import Array, inlined, kernel
from attnlab.explicit.products import add_product


@inlined
def linear_forward(
    x: Float[Array, "T I"], weight_t: Float[Array, "I O"], bias: Float[Array, "O"], out: Float[Array, "T O"]
) -> None:
    """``out = x W^T + b``; the weight comes transposed."""
    for t in range(out.shape[0]):
        for o in range(out.shape[1]):
            out[t, o] = bias[o]
    add_product(out, x, weight_t)


@inlined
def linear_backward(
    x: Float[Array, "T I"],
    weight: Float[Array, "O I"],
    d_out: Float[Array, "T O"],
    d_weight: Float[Array, "O I"],
    d_bias: Float[Array, "O"],
    d_x: Float[Array, "T I"],
) -> None:
    """Adds to ``d_weight``, ``d_bias`` and ``d_x``."""
    add_product(d_weight, d_out.T, x)
    for t in range(d_out.shape[0]):
        for o in range(d_out.shape[1]):
            d_bias[o] += d_out[t, o]
    add_product(d_x, d_out, weight)


@kernel
def transpose(x: Float[Array, "R C"], rows: int, columns: int, out: Float[Array, "C R"]) -> None:
    """``out[c, r] = x[r, c]`` for the first ``rows`` and ``columns``; the rest of ``out`` stays."""
    for c in range(columns):
        for r in range(rows):
            out[c, r] = x[r, c]
