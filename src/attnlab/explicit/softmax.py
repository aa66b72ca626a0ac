"""Softmax over the keys of every query, and its gradient.

Forward, for one query with a score x[s] for each key s; the maximum keeps exp in range and cancels:

    p[s] = exp(x[s] - max x) / sum over u of exp(x[u] - max x)

Backward: the derivative of p[u] by x[s] is p[u] ([u = s] - p[s]), therefore

    dx[s] = sum_u dp[u] p[u] ([u = s] - p[s]) = p[s] (dp[s] - sum_u dp[u] p[u])

For one query dx sums to zero: raising all its scores alike changes nothing.

Arrays hold keys as rows and queries as columns. A vector then holds many queries, and maximum and sum run
from row to row, never across a vector. ``top`` and ``total`` are scratch, one element for each query.
"""

from jaxtyping import Float

from attnlab.explicit.compiling import Array, kernel
from attnlab.explicit.exponential import exponential


@kernel
def softmax_forward(x: Float[Array, "S Tp"], top: Float[Array, "Tp"], total: Float[Array, "Tp"]) -> None:
    """In place."""
    keys, queries = x.shape
    for t in range(queries):
        top[t] = x[0, t]
        total[t] = 0
    for s in range(1, keys):
        for t in range(queries):
            top[t] = max(top[t], x[s, t])
    for s in range(keys):
        for t in range(queries):
            value = exponential(x[s, t] - top[t])
            x[s, t] = value
            total[t] += value
    for t in range(queries):
        total[t] = x.dtype.type(1) / total[t]
    for s in range(keys):
        for t in range(queries):
            x[s, t] *= total[t]


@kernel
def softmax_backward(
    pattern: Float[Array, "S Tp"], d_pattern: Float[Array, "S Tp"], total: Float[Array, "Tp"]
) -> None:
    """Turns ``d_pattern`` into the gradient of the scores, in place."""
    keys, queries = pattern.shape
    total[:] = 0
    for s in range(keys):
        for t in range(queries):
            total[t] += d_pattern[s, t] * pattern[s, t]
    for s in range(keys):
        for t in range(queries):
            d_pattern[s, t] = pattern[s, t] * (d_pattern[s, t] - total[t])
