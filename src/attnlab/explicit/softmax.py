"""Softmax over the keys of every query, and its gradient.

Forward, for one query with a score x[s] for each key s; the maximum keeps exp in range and cancels:

    p[s] = exp(x[s] - max x) / sum over u of exp(x[u] - max x)

Backward: the derivative of p[u] by x[s] is p[u] ([u = s] - p[s]), therefore

    dx[s] = sum_u dp[u] p[u] ([u = s] - p[s]) = p[s] (dp[s] - sum_u dp[u] p[u])

For one query dx sums to zero: raising all its scores alike changes nothing.

exp has a form that compilers turn into vector instructions (a call of the C library's stops them).
With n the integer nearest to x / ln 2 and r = x - n ln 2, so that |r| <= ln 2 / 2:

    exp(x) = 2^n exp(r),        exp(r) = 1 + r + r^2/2! + ... + r^7/7!   + less than 6e-9

2^n is made by writing n + 127 into the exponent of a float32. ln 2 is subtracted in two parts, the first
short enough that n times it is exact. Below -87 the result is exp(-87), about 1e-38. float64 takes the C
library's.

Arrays hold keys as rows and queries as columns. A vector then holds many queries, and maximum and sum run
from row to row, never across a vector. ``top`` and ``total`` are scratch, one element for each query.
"""

import math
from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float
from numba import types
from numba.extending import overload

from attnlab.explicit.compiling import Array, exact, kernel

LEAST = np.float32(-87.0)
PER_LN2 = np.float32(1 / math.log(2))
LN2_SHORT = np.float32(355 / 512)
LN2_REST = np.float32(math.log(2) - 355 / 512)
HALF = np.float32(0.5)
ONE = np.float32(1)
C2, C3, C4, C5, C6, C7 = (np.float32(1 / math.factorial(n)) for n in range(2, 8))


@exact
def _exp32(x: np.float32) -> np.float32:
    x = LEAST if x < LEAST else x
    n = np.floor(x * PER_LN2 + HALF)
    r = x - n * LN2_SHORT - n * LN2_REST
    series = C4 + r * (C5 + r * (C6 + r * C7))
    series = ONE + r * (ONE + r * (C2 + r * (C3 + r * series)))
    power = np.int32((np.int32(n) + 127) << 23).view(np.float32)
    return series * power


def exponential(x: Any) -> Any:
    """exp(x) for x of at most 88."""
    return np.exp(x)


@overload(exponential)
@no_type_check
def _choose(x):
    return (lambda x: _exp32(x)) if x == types.float32 else (lambda x: math.exp(x))


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
