"""The machine: cores that this process may use, how many of them are free, how idle threads wait; memory.

torch computes with OpenMP threads, which spin for a while before they sleep when they have nothing to do.
On a quiet machine that is fast: the next piece of work finds them awake. Beside other programs it is
ruinous: a thread that spins until another one has done its part keeps that one off the core. How long they
spin is read from the environment once, when the OpenMP library is loaded, so this module comes before torch
and does without it.
"""

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SPINS = "3000"
"""Turns of GNU's waiting loop before a thread sleeps; its own default is 300,000."""
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")
"""Variables by which users say how threads wait; whoever has set one of them is left alone."""

_STAT = Path("/proc/stat")
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def cores() -> int:
    """Cores that this process may use."""
    return len(own_cores())


def bound_spinning() -> None:
    """Let OpenMP's threads sleep soon, unless the user has said how they wait; before torch is loaded."""
    if any(name in os.environ for name in WAITING):
        return
    if "torch" in sys.modules and cores() > 1 and os.environ.get("OMP_NUM_THREADS") != "1":
        warnings.warn(
            "torch was imported before attnlab, so its threads keep spinning while they wait and are slow "
            "beside other programs; import attnlab first, or set OMP_WAIT_POLICY=passive",
            RuntimeWarning,
            stacklevel=3,
        )
    os.environ["GOMP_SPINCOUNT"] = SPINS  # also for processes that this one starts


@dataclass(frozen=True)
class Load:
    """Seconds that ``cores`` have worked until ``at``, for all programs and for this process alone."""

    cores: frozenset[int]
    at: float
    everybody: float
    own: float

    @property
    def age(self) -> float:
        """Seconds since."""
        return time.monotonic() - self.at


def read_load(of: frozenset[int] | None = None) -> Load | None:
    """What some cores, by default those of this process, have done; None where the system does not say."""
    of = own_cores() if of is None else of
    names = {f"cpu{number}" for number in of}
    try:
        lines = [line.split() for line in _STAT.read_text(encoding="ascii").splitlines()]
        ticks = sum(_working(words[1:]) for words in lines if words and words[0] in names)
    except (OSError, ValueError):
        return None
    return Load(of, time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), time.process_time())


def taken_since(before: Load | None) -> float:
    """How many cores other programs have taken on average since ``before``; 0 where nobody knows."""
    now = None if before is None else read_load(before.cores)
    if before is None or now is None or now.at <= before.at:
        return 0.0
    others = (now.everybody - before.everybody) - (now.own - before.own)
    return max(0.0, others / (now.at - before.at))


def own_cores() -> frozenset[int]:
    """Numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def memory() -> int:
    """Bytes of memory that this process may use: of the machine, of its container, of its own limit."""
    found = [sys.maxsize]
    with contextlib.suppress(OSError, ValueError, AttributeError):  # not every system says
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError, ValueError):  # "max": no limit
        found.append(int(_CONTAINER.read_text(encoding="ascii")))
    with contextlib.suppress(ImportError):
        import resource  # not on every system

        found.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min(each for each in found if each > 0)


def _working(fields: Iterable[str]) -> int:
    """Ticks of a core that were not idle: user, nice, system, interrupts, and what other guests stole."""
    user, nice, system, _idle, _waiting, *rest = map(int, fields)
    return user + nice + system + sum(rest[:3])
