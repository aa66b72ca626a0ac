"""Values that are made when they are first asked for and then kept, for several threads.

A server answers in one thread, lists examples in another and analyses in a third. They share the examples
of a run and what stands in for its parts; what takes long is made once, by whoever asks first.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any, Generic, TypeVar, final

K = TypeVar("K")
T = TypeVar("T")


@final
class Kept(Generic[K]):
    """Values by their keys. Making one must not ask for the same one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._futures: dict[K, Future[Any]] = {}

    def get(self, key: K, make: Callable[[], T]) -> T:
        """What ``make`` gave when it was called for ``key``; whoever asks meanwhile waits for it."""
        with self._lock:
            own = key not in self._futures
            future: Future[T] = self._futures.setdefault(key, Future())
        if own:
            try:
                future.set_result(make())
            except BaseException as error:
                with self._lock:
                    del self._futures[key]
                future.set_exception(error)
        return future.result()

    def find(self, key: K) -> Any:
        """The value if it is there already, else None."""
        with self._lock:
            future = self._futures.get(key)
        return future.result() if future is not None and future.done() else None

    def asked(self) -> list[K]:
        """The keys of values that are there or are being made."""
        with self._lock:
            return list(self._futures)
