"""Blocks of memory that a step gives back are kept for the next one.

glibc hands large blocks back to the system as soon as they are free, and the next step has to have every
page of them cleared again, which a model over images feels at each step. Told to keep them, a process
holds its peak, which training reaches in every step anyway.
"""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h


def keep_blocks() -> bool:
    """Ask the allocator to keep what is freed; False where it is not glibc's."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 2**30)) and bool(mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))
