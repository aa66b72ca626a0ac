"""Jobs that take a moment, a link that keeps what they tell, and what they leave in the pool."""

import json
import signal
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, final

from attnlab.runs import RunFolder, as_line, create_run
from attnlab.runs.manifest import MANIFEST
from attnlab.specs import Spec
from attnlab.studies.jobs import ENDS, Event, Job, pool_run
from attnlab.studies.running import Executor, drive
from attnlab.studies.worker import perform
from attnlab.training import train_run
from tiny import tiny

SPEC = tiny(threads=1)
STEPS = 15
LONGER = tiny(threads=1, epochs=7)
BOTH: tuple[str, ...] = ("evaluate-test", "verify")


@final
class FakeLink:
    """Keeps all events; stops when told to; answers from a list, yes when that is used up."""

    def __init__(
        self, *, stop: Callable[[list[Event]], bool] = lambda events: False, answers: Iterable[bool] = ()
    ) -> None:
        self.events: list[Event] = []
        self._stop = stop
        self._answers = iter(answers)

    def send(self, event: Event) -> None:
        self.events.append(event)

    def stopping(self) -> bool:
        return self._stop(self.events)

    def may_go_on(self) -> bool:
        assert self.events[-1].kind == "epoch"
        return next(self._answers, True)

    @property
    def epochs(self) -> list[int]:
        return epochs(self.events)

    @property
    def last(self) -> Event:
        assert [event.kind in ENDS for event in self.events] == [False] * (len(self.events) - 1) + [True]
        return self.events[-1]


@final
class AtOnce:
    """An executor that does each job in this process; ``stop_after`` so many, somebody interrupts."""

    def __init__(self, pool: Path, *, stop_after: int = -1) -> None:
        self._pool = pool
        self._events: list[Event] = []
        self.given: list[int] = []
        self.slots = 1
        self._stop_after = stop_after

    def __enter__(self) -> "AtOnce":
        return self

    def __exit__(self, *error: object) -> None: ...

    def submit(self, job: Job) -> None:
        self.given.append(job.spec.seed)
        perform(job, self._pool, self)
        if len(self.given) == self._stop_after:
            signal.raise_signal(signal.SIGINT)

    def wait(self, seconds: float) -> list[Event]:
        events, self._events = self._events, []
        return events

    def answer(self, job: str, *, go_on: bool) -> None: ...

    def stop(self) -> None: ...

    def send(self, event: Event) -> None:
        self._events.append(event)

    def stopping(self) -> bool:
        return False

    def may_go_on(self) -> bool:
        return True


def epochs(events: list[Event]) -> list[int]:
    return [event.data["epoch"] for event in events if event.kind == "epoch"]


def after_epochs(count: int) -> Callable[[list[Event]], bool]:
    return lambda events: len(epochs(events)) >= count


def done(job: Job, pool: Path, **link: Any) -> FakeLink:
    found = FakeLink(**link)
    perform(job, pool, found)
    return found


def run_of(pool: Path, spec: Spec = SPEC) -> RunFolder:
    run = pool_run(pool, spec)
    assert run is not None
    return run


def weights(run: RunFolder) -> list[bytes]:
    return [run.file(name).read_bytes() for name in ("best.safetensors", "last.safetensors")]


def metrics(run: RunFolder) -> list[dict[str, Any]]:
    lines = map(as_line, run.metrics().lines)
    return [{key: line[key] for key in line if key != "seconds"} for line in lines]


def times(run: RunFolder) -> dict[str, int]:
    """When files were written; the manifest is whenever one of them is."""
    files = (path for path in run.path.rglob("*.*") if not path.name.startswith((".", MANIFEST)))
    return {path.name: path.stat().st_mtime_ns for path in files}


def trained(folder: Path, spec: Spec) -> RunFolder:
    """The run of ``spec`` as it is without any jobs."""
    run = create_run(folder / "run", spec)
    train_run(run)
    return run


def jobs(count: int) -> list[Job]:
    return [Job(spec=replace(SPEC, seed=seed)) for seed in range(count)]


def drive_all(
    executor: Executor, todo: list[Job], pool: Path, stopping: Callable[[], bool] = lambda: False
) -> list[Event]:
    waiting, handled = iter(todo), list[Event]()
    next_job = partial(next, waiting, None)
    drive(executor, pool, next_job=next_job, handle=handled.append, stopping=stopping)
    return handled


def line(**message: Any) -> str:
    return json.dumps(message) + "\n"
