"""Sharing work among threads that wait for it.

Kernels let go of Python's lock, so that threads really run side by side. Starting a thread for every
batch would cost as much as a small batch; these live on, asleep between calls.
"""

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial


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
