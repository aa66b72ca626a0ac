"""How kernels are compiled: four decorators, and a cache on disk that notices every change.

Numba keeps compiled code beside the source and compiles again when *that* file changes, but not when a
function called from another file does. ``SOURCES`` is a fingerprint of this whole folder; the functions
that Python calls carry it in their closure, which is part of the cache's key.
"""

import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    Array = NDArray[Any]
else:
    Array = np.ndarray

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be reordered and a*b+c may be rounded once; NaN and infinity keep their meaning.
FAST = {"reassoc", "nsz", "arcp", "contract"}


def kernel(function: Function) -> Function:
    """Compile ``function`` for the types it is called with."""
    return _compiled(function, fastmath=FAST)


def inlined(function: Function) -> Function:
    """The same, as a part of its callers: many small functions then cost one compilation."""
    return _compiled(function, inline="always", fastmath=FAST)


def exact(function: Function) -> Function:
    """The same without reordering of sums, for code that counts on rounding."""
    return _compiled(function, fastmath={"contract"})


def entry(function: Function) -> Function:
    """A kernel that Python calls: kept on disk, all it calls included; other threads run meanwhile."""
    options = {"nogil": True, "fastmath": FAST}
    try:
        return _compiled(function, cache=True, **options)
    except RuntimeError:  # neither this folder nor the user's home can be written
        return _compiled(function, **options)


def _compiled(function: Function, **options: Any) -> Function:
    # A test may have wrapped the function to check types, which is not for the compiler.
    compiled: Any = numba.njit(error_model="numpy", **options)(inspect.unwrap(function))
    return compiled


def fingerprint() -> str:
    """A digest of all sources in this folder."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCES = fingerprint()
