"""Threads that follow the load, without another number of them: that number decides how a run rounds.

A training step is hundreds of small pieces of work, and after each of them all threads wait for the
slowest. While the machine is quiet they spin, and the next piece finds them awake. Beside another program
one of them loses its core again and again, and the others burn theirs while they wait. Then two things
help:

- Threads that wait sleep at once. GNU's OpenMP does so as long as it manages more threads than there are
  cores, and a second team of them that stays idle is enough for that (the manual of libgomp, under
  ``GOMP_SPINCOUNT``).
- Where a single core is left, all threads stay on it. Taking turns there is faster than waiting for the
  core that somebody else uses.

Both change when something is computed, not what. Where the system does not say what its cores do, which is
everywhere but on Linux, nothing is changed.
"""

import ctypes
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import final

import torch

from attnlab.cores import Load, own_cores, read_load, taken_since
from attnlab.training.events import Listener
from attnlab.training.trainer import Trainer

LOOK = 0.5
"""Seconds between two looks at the load."""
FIRST = 0.1
"""Seconds of preparation that are enough for a look before the first step; ticks are of 0.01 s."""
BUSY = 0.5
"""Cores taken by other programs from which on threads make room for them."""

_TASKS = Path("/proc/self/task")
_SHARED = 2**17  # elements that torch shares out to threads


@final
class FollowLoad(Listener):
    """Makes room while other programs take the cores. As a context it leaves everything as it was."""

    def __init__(self) -> None:
        self._cores = own_cores()
        self._load: Load | None = None
        self._surplus: Surplus | None = None

    def __enter__(self) -> "FollowLoad":
        self._load = read_load(self._cores)
        return self

    def __exit__(self, *error: object) -> None:
        self.make_room(0.0)

    def started(self, trainer: Trainer) -> None:
        self._look(after=FIRST)

    def stepped(self, trainer: Trainer) -> None:
        self._look(after=LOOK)

    def _look(self, *, after: float) -> None:
        """Follow the load of the time since the last look, if that is long enough ago to say anything."""
        if self._load is not None and self._load.age > after:
            self.make_room(taken_since(self._load))
            self._load = read_load(self._cores)

    def make_room(self, taken: float) -> None:
        """Do what helps when others take so many cores."""
        crowded = taken >= BUSY and torch.get_num_threads() > 1
        if crowded and self._surplus is None:
            self._surplus = Surplus()
        if not crowded and self._surplus is not None:
            self._surplus.end()
            self._surplus = None
        alone = crowded and round(len(self._cores) - taken) == 1
        stay_on(self._one_core() if alone else self._cores)

    def _one_core(self) -> frozenset[int]:
        """One of the cores; another one for the next process."""
        return frozenset([sorted(self._cores)[os.getpid() % len(self._cores)]])


@final
class Surplus:
    """A second team of OpenMP's threads, so that there are more of them than cores; idle until its end."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._idle, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _idle(self, ready: threading.Event) -> None:
        torch.ones(_SHARED).neg_()  # with as many threads as torch has
        ready.set()
        self._ended.wait()


def stay_on(cores: frozenset[int]) -> None:
    """Keep all threads of this process on ``cores``, where the system lets us."""
    if own_cores() == cores or not hasattr(os, "sched_setaffinity"):
        return
    for task in _TASKS.iterdir():
        with suppress(OSError):  # it has ended meanwhile
            os.sched_setaffinity(int(task.name), cores)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h


def keep_blocks() -> bool:
    """Ask the allocator to keep what is freed for the next step; False where it is not glibc's.

    glibc hands large blocks back to the system as soon as they are free, and the next step has to have
    every page of them cleared again, which a model over images feels at each step. Told to keep them, a
    process holds its peak, which training reaches in every step anyway.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 2**30)) and bool(mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))
