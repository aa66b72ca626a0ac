"""Threads: how many train a model fastest, a short measurement, made once and remembered; and what they do
beside other programs.

Tiny models are bound by overhead, and one thread often beats two. Another number of threads rounds
differently, so a run writes its number down and keeps it. ``training.threads`` overrides the choice.

A load that passes must not decide for ever. Counts are compared by their fastest step, fewer threads win
unless more are faster by ``GAIN``, and a measurement beside other programs is used but not remembered.
A run that was far slower than remembered on a quiet machine makes the next one measure again.

While a run trains, its threads follow the load, without another number of them. A training step is
hundreds of small pieces of work, and after each of them all threads wait for the slowest. While
the machine is quiet they spin, and the next piece finds them awake. Beside another program one of them
loses its core again and again, and the others burn theirs while they wait. Then two things help:

- Threads that wait sleep at once. GNU's OpenMP does so as long as it manages more threads than there are
  cores, and a second team of them that stays idle is enough for that (the manual of libgomp, under
  ``GOMP_SPINCOUNT``).
- Where a single core is left, all threads stay on it. Taking turns there is faster than waiting for the
  core that somebody else uses.

Both change when something is computed, not what. Where the system does not say what its cores do, which is
everywhere but on Linux, nothing is changed.
"""

import ctypes
import hashlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, final

import torch

from attnlab.cores import Load, cores, own_cores, read_load, taken_since
from attnlab.devices import CPU, find_device, is_cpu
from attnlab.errors import SpecError, StorageError
from attnlab.reading import read_json
from attnlab.runs import describe_environment
from attnlab.specs import Spec, from_json, to_json
from attnlab.storage import user_cache, write_json
from attnlab.training.events import Listener
from attnlab.training.trainer import Trainer

GAIN = 1.03
"""How much faster a step must be to be worth another thread."""
QUIET = 0.25
"""Cores that other programs may take while something is measured that is to be remembered."""
SLOW = 2.0
"""So many times the remembered seconds a step are far slower than remembered."""
STILL = 1e-12
"""A learning rate that moves nothing, so that no measured step diverges."""
_STEPS = 7


class Choice(NamedTuple):
    """The fastest number of threads, and the seconds that a step took with it."""

    threads: int
    seconds: float


def choose_threads(spec: Spec) -> int:
    """The spec's thread count, or the fastest by measurement."""
    if spec.training.threads:
        return spec.training.threads
    if most_threads() == 1 or not is_cpu(find_device(spec.training.device)):
        return most_threads()  # an accelerator does not wait for threads
    known, key = _read(_cache_file()), _key(spec)
    choice = known.get(key)
    if choice is None:
        before = read_load()
        choice = _fastest(spec)
        if taken_since(before) < QUIET:
            _remember({**known, key: choice})
    return choice.threads


@final
class Pace(Listener):
    """Watches whether steps are as fast as they were when the number of threads was chosen."""

    def __init__(self, spec: Spec, threads: int) -> None:
        self._spec = spec
        self._threads = threads
        self._load: Load | None = None
        self._last = math.inf
        self._fastest = math.inf

    def started(self, trainer: Trainer) -> None:
        self._load, self._last = read_load(), time.perf_counter()

    def stepped(self, trainer: Trainer) -> None:
        now = time.perf_counter()
        self._fastest, self._last = min(self._fastest, now - self._last), now

    def stopped(self, trainer: Trainer) -> None:
        if not self._spec.training.threads and taken_since(self._load) < QUIET:
            forget_if_slow(self._spec, Choice(self._threads, self._fastest))


def forget_if_slow(spec: Spec, found: Choice) -> None:
    """Let the next run measure again if the fastest step of one took far longer than remembered."""
    known, key = _read(_cache_file()), _key(spec)
    expected = known.get(key, found)
    if expected.threads == found.threads and SLOW * expected.seconds < found.seconds < math.inf:
        _remember({name: choice for name, choice in known.items() if name != key})


def _fastest(spec: Spec) -> Choice:
    """Compare counts by the fastest of a few training steps, counts taken in turn."""
    batch = spec.training.batch
    enough = min(spec.task.train, batch * (_STEPS + 1))
    task = replace(spec.task, train=enough, valid=1, test=1)
    probe = replace(spec, task=task, training=replace(spec.training, lr=STILL))
    options = sorted({1, *(2**n for n in range(1, 7) if 2**n <= most_threads()), most_threads()})
    seconds = dict.fromkeys(options, math.inf)
    before = torch.get_num_threads()
    with torch.random.fork_rng():
        trainer = Trainer(probe)
        examples = trainer.data.train[slice(0, batch)]
        for _ in range(_STEPS):
            for count in options:
                torch.set_num_threads(count)
                began = time.perf_counter()
                trainer.update(examples)
                seconds[count] = min(seconds[count], time.perf_counter() - began)
    torch.set_num_threads(before)
    return pick(seconds)


def pick(seconds: dict[int, float]) -> Choice:
    """The smallest count that is at most ``GAIN`` times as slow as the fastest."""
    bound = GAIN * min(seconds.values())
    threads = min(count for count, taken in seconds.items() if taken <= bound)
    return Choice(threads, seconds[threads])


def most_threads() -> int:
    """The largest count to try: that of the cores, or what the user allows by ``OMP_NUM_THREADS``."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores(), int(asked)) if asked.isdecimal() and int(asked) > 0 else cores()


def _key(spec: Spec) -> str:
    environment = describe_environment()
    shape = {
        "model": to_json(spec.model),
        "optimiser": to_json(spec.training.optimiser),
        "batch": spec.training.batch,
        "task": to_json(replace(spec.task, train=1, valid=1, test=1)),
        "machine": [environment.processor, environment.capabilities, environment.torch, most_threads()],
    }
    if spec.engine != "torch":
        shape["engine"] = spec.engine
    if spec.training.precision != "float32":
        shape["precision"] = spec.training.precision
    if spec.training.device != CPU:
        shape["device"] = spec.training.device
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]


def _cache_file() -> Path:
    return user_cache() / "threads.json"


def _remember(known: dict[str, Choice]) -> None:
    with suppress(OSError, StorageError):  # remembering is a help, not a need
        _cache_file().parent.mkdir(parents=True, exist_ok=True)
        write_json(_cache_file(), known)


def _read(path: Path) -> dict[str, Choice]:
    try:
        known = from_json(dict[str, tuple[int, float]], read_json(path))
        return {key: Choice(threads, seconds) for key, (threads, seconds) in known.items()}
    except (OSError, ValueError, SpecError):
        return {}


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
        self._crowded = False
        self._surplus = ExitStack()

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
        if crowded and not self._crowded:
            self._surplus.enter_context(surplus_team())
        if not crowded:
            self._surplus.close()
        self._crowded = crowded
        alone = crowded and round(len(self._cores) - taken) == 1
        one = sorted(self._cores)[os.getpid() % len(self._cores)]  # another one for the next process
        stay_on(frozenset([one]) if alone else self._cores)


@contextmanager
def surplus_team() -> Iterator[None]:
    """A second team of OpenMP's threads, so that there are more of them than cores; idle meanwhile."""
    ready, ended = threading.Event(), threading.Event()

    def idle() -> None:
        torch.ones(_SHARED).neg_()  # with as many threads as torch has
        ready.set()
        ended.wait()

    thread = threading.Thread(target=idle, daemon=True)
    thread.start()
    ready.wait()
    yield
    ended.set()
    thread.join()


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
