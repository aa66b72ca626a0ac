"""A process that is killed at a chosen write: from then on it writes nothing, not even to tidy up."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Killed(BaseException):
    """The end."""


class Death:
    """Counts what changes the disk; the call number ``at`` and all later ones do nothing but raise."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0

    def watch(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if really is OPEN and not arguments[1] & os.O_EXCL:  # a look, or a lock
                return OPEN(*arguments, **named)
            self.calls += 1
            if self.calls >= self.at:
                raise Killed
            return really(*arguments, **named)

        return call


OPEN = os.open
WRITES: tuple[tuple[Any, str], ...] = (
    *((os, "open"), (os, "fsync")),
    *((Path, "replace"), (Path, "unlink"), (Path, "mkdir")),
)


@contextmanager
def killed(at: int) -> Iterator[Death]:
    """Run what follows in a process that dies there, if it gets so far."""
    death = Death(at)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in WRITES:
            patch.setattr(owner, name, death.watch(getattr(owner, name)))
        try:
            yield death
        except Killed:
            return


def each_kill(do: Callable[[], object], *, begin: Callable[[], object], stride: int = 1) -> Iterator[int]:
    """Let ``do`` be killed at its first write, its second and so on, each after ``begin``; the number of
    the write, once it is dead.
    """
    at = 1
    while True:
        begin()
        with killed(at) as death:
            do()
        if death.calls < at:
            return
        yield at
        at += stride
