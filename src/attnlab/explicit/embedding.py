"""From an image to tokens, and back to the gradients of the embedding.

Forward, with patch x[t] of pixels, cut row by row, left to right, top to bottom:

    tokens[t] = relu(x[t] W^T + b + positions[t]),      relu(a) = max(a, 0)

Backward: relu passes a gradient where it passed its input and stops it elsewhere,

    da = d_tokens where tokens > 0, else 0

then W and x[t] form a linear layer. b + positions[t] adds to a[t], so d_positions[t] = da[t], and db is
its sum over t. The image itself needs no gradient.
"""

from jaxtyping import Float

from attnlab.explicit.compiling import Array, inlined
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
def embed_forward(
    patches: Float[Array, "T Pp"],
    weight_t: Float[Array, "P Dp"],
    table: Float[Array, "T Dp"],
    out: Float[Array, "T Dp"],
) -> None:
    """``table`` is positions + bias."""
    for t in range(out.shape[0]):
        for d in range(out.shape[1]):
            out[t, d] = table[t, d]
    add_product(out, patches, weight_t)
    zero = out.dtype.type(0)
    for t in range(out.shape[0]):
        for d in range(out.shape[1]):
            out[t, d] = max(out[t, d], zero)


@inlined
def embed_backward(
    patches: Float[Array, "T Pp"],
    tokens: Float[Array, "T Dp"],
    d_tokens: Float[Array, "T Dp"],
    d_weight: Float[Array, "D Pp"],
    d_positions: Float[Array, "T Dp"],
) -> None:
    """Adds to ``d_weight`` and ``d_positions``; stops ``d_tokens`` where relu did."""
    zero = tokens.dtype.type(0)
    for t in range(tokens.shape[0]):
        for d in range(tokens.shape[1]):
            passed = d_tokens[t, d] if tokens[t, d] > zero else zero
            d_tokens[t, d] = passed
            d_positions[t, d] += passed
    add_product(d_weight, d_tokens.T, patches)
