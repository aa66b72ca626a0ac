"""Ray's calls within this process: a task is a thread, an actor an object."""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from threading import Lock
from types import SimpleNamespace
from typing import Any, final

import ray
import ray.exceptions


@final
class FakeActor:
    def __init__(self, kind: Callable[[], Any]) -> None:
        self._lock = Lock()
        self._inner = kind()
        self.lost = False

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> "Future[Any]":
            with self._lock:
                if self.lost:
                    return broken(ray.exceptions.ActorDiedError())
                return done(getattr(self._inner, name)(*arguments))

        return SimpleNamespace(remote=call)


def done(value: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def broken(error: Exception) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


@final
@dataclass
class FakeRay:
    """A task is a thread, unless it is to be lost or to wait for a core for ever; an actor is an object."""

    losses: list[Exception] = field(default_factory=list)
    full: bool = False
    cores: float = 2.0
    sent: list[tuple[Any, ...]] = field(default_factory=list)
    actors: list[FakeActor] = field(default_factory=list)
    queued: "list[Future[Any]]" = field(default_factory=list)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))

    exceptions = ray.exceptions
    util = SimpleNamespace(
        scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, soft: "")
    )

    def remote(self, *, num_cpus: int, max_retries: int = 0) -> Callable[[Any], Any]:
        return lambda thing: self._actor(thing) if isinstance(thing, type) else self._task(thing)

    def _actor(self, kind: Callable[[], Any]) -> Any:
        self.actors.append(FakeActor(kind))
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: self.actors[-1]))

    def _task(self, function: Callable[..., Any]) -> Any:
        def submit(*arguments: Any) -> "Future[Any]":
            self.sent.append(arguments)
            if self.losses:
                return broken(self.losses.pop(0))
            if self.full:
                self.queued.append(Future())
                return self.queued[-1]
            return self.threads.submit(function, *arguments)

        return SimpleNamespace(remote=submit)

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")

    def nodes(self) -> list[dict[str, Any]]:
        gone = {"NodeID": "gone", "Alive": False, "Resources": {"CPU": 100.0}}
        bare = {"NodeID": "bare", "Alive": True, "Resources": {}}
        here = {"NodeID": "here", "Alive": True, "Resources": {"CPU": self.cores}}
        return [gone, bare, here]

    def get(self, future: "Future[Any]") -> Any:
        return future.result()

    def wait(self, futures: "list[Future[Any]]", *, timeout: float) -> Any:
        found = wait_for(futures, timeout, FIRST_COMPLETED)
        return list(found.done)[:1], list(found.not_done)

    def cancel(self, future: "Future[Any]") -> None:
        if future in self.queued:
            future.set_exception(ray.exceptions.TaskCancelledError())

    def shutdown(self) -> None:
        self.threads.shutdown()
