"""exp, in a form that compilers turn into vector instructions (a call of the C library's exp stops them).

With n the integer nearest to x / ln 2 and r = x - n ln 2, so that |r| <= ln 2 / 2:

    exp(x) = 2^n exp(r),        exp(r) = 1 + r + r^2/2! + ... + r^7/7!   + less than 6e-9

2^n is made by writing n + 127 into the exponent of a float32. ln 2 is subtracted in two parts, the first
short enough that n times it is exact. Below -87 the result is exp(-87), about 1e-38. float64 takes the C
library's.
"""

import math
from typing import Any, no_type_check

import numpy as np
from numba import types
from numba.extending import overload

from attnlab.explicit.compiling import exact

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
