"""Sharing work among threads that wait for it.

Kernels let go of Python's lock, so that threads really run side by side. Starting a thread for every
batch would cost as much as a small batch; these live on, asleep between calls.

Waking a sleeping thread can take longer than a whole small batch, too. A helper therefore watches a word of
memory of its own for a short while after each batch, and goes to sleep only when none follows:

    ASLEEP --Python gives it work--> WORK --batch done--> READY --next batch--> WORK ...
                                                            \\--nothing comes--> ASLEEP

Words change by compare-and-exchange, without Python: it settles who was first when a batch arrives in the
moment a helper falls asleep.
"""

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, no_type_check

import numba
from jaxtyping import Int
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from attnlab.explicit.compiling import Array, inlined, kernel


class Helper:
    """A thread that makes one call at a time."""

    def __init__(self) -> None:
        self._call: Callable[[], None] = _nothing
        self._error: BaseException | None = None
        self.busy = False
        self._given, self._done = threading.Lock(), threading.Lock()
        self._given.acquire()
        self._done.acquire()
        threading.Thread(target=self._work, daemon=True).start()

    def start(self, call: Callable[[], None]) -> None:
        """Make the call, as soon as the one before has ended."""
        self.wait()
        self._call, self.busy = call, True
        self._given.release()

    def wait(self) -> None:
        """Until the call has ended; raises what it raised."""
        if self.busy:
            self._done.acquire()
            error, self._error, self._call, self.busy = self._error, None, _nothing, False
            if error is not None:
                raise error

    def check(self) -> None:
        """Raise what the call raised, if it has."""
        if self._error is not None:
            self.wait()

    def _work(self) -> None:
        while True:
            self._given.acquire()
            try:
                self._call()
            except BaseException as error:
                self._error = error
            self._done.release()


def _nothing() -> None:
    """What a helper without work would do."""


_helpers: list[Helper] = []
one_at_a_time = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.clear)  # threads do not follow a fork


def get_helpers(count: int) -> list[Helper]:
    """The first ``count`` helpers, which all networks of a process share."""
    while len(_helpers) < count:
        _helpers.append(Helper())
    return _helpers[:count]


def share(work: Callable[[int], None], workers: int) -> None:
    """``work(0)`` to ``work(workers - 1)``, each in a thread of its own, the first in this one."""
    with one_at_a_time, ExitStack() as waiting:
        for index, helper in enumerate(get_helpers(workers - 1), start=1):
            helper.start(partial(work, index))
            waiting.callback(helper.wait)
        work(0)


ASLEEP, READY, WORK = 0, 1, 2
LINE = 8  # words of a cache line: no two helpers share one
WATCH = 60_000  # looks at a word; well under a millisecond


@kernel
def call_helpers(words: Int[Array, "W 8"], called: Int[Array, "W"]) -> None:
    """Give work to all helpers that are ready; ``called`` says which, the others need waking."""
    for w in range(1, words.shape[0]):
        called[w] = exchange(words, w, READY, WORK)


@kernel
def next_turn(words: Int[Array, "W 8"], w: int) -> bool:
    """Helper ``w`` is done: wait for more work; False when it is time to sleep."""
    exchange(words, w, WORK, READY)
    for _ in range(WATCH):
        if exchange(words, w, WORK, WORK):
            return True
    return not exchange(words, w, READY, ASLEEP)


@kernel
def all_done(words: Int[Array, "W 8"]) -> bool:
    """Watch until no helper works any more; False when that takes long."""
    for w in range(1, words.shape[0]):
        looks = 0
        while exchange(words, w, WORK, WORK):
            looks += 1
            if looks == WATCH:
                return False
    return True


@inlined
def array_at(address: int, shape: tuple[int, ...], like: Array) -> Array:
    """The array at an address, of the element type of ``like``."""
    return numba.carray(pointer(address, like), shape)  # type: ignore[attr-defined]


@intrinsic
@no_type_check
def exchange(typing, words, w, expected, new):
    """``words[w, 0] = new`` if it was ``expected``; whether it was."""

    def write(context, builder, signature, args):
        array = context.make_array(words)(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, array.strides, 2)[0]
        address = builder.add(builder.ptrtoint(array.data, stride.type), builder.mul(args[1], stride))
        place = builder.inttoptr(address, ir.IntType(64).as_pointer())
        pair = builder.cmpxchg(place, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(words, types.intp, types.int64, types.int64), write


@intrinsic
@no_type_check
def pointer(typing, address, like):
    """``address`` as a pointer to elements of ``like``."""
    kind = types.CPointer(like.dtype)

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return kind(types.intp, like), write
