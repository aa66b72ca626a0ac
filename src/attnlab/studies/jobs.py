"""A job: one run to train and analyse, wherever there is a free worker.

A pool is a folder of runs that go by the hash of their spec. Whoever needs a spec, whichever study or sweep
it is, finds the same run there, finished or begun; so studies share runs, and nothing is done twice.
"""

import secrets
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, final, runtime_checkable

from attnlab.errors import RunError, SpecError
from attnlab.reading import parse_json
from attnlab.registry import CODE, Source, run_source, source_of
from attnlab.results import Result
from attnlab.runs import RunFolder, create_run
from attnlab.runs.creating import TakenError
from attnlab.specs import Spec, from_json, spec_hash, to_json
from attnlab.storage import as_json, refusing
from attnlab.training.trackers import Tracker

POOL = "runs/pool"
"""The pool, unless another is named."""
ERROR = "error.json"

EventKind = Literal["progress", "epoch", "finished", "pruned", "stopped", "failed", "crashed"]
ENDS: tuple[EventKind, ...] = ("finished", "pruned", "stopped", "failed", "crashed")
"""Events after which a job is over."""


@final
@dataclass(frozen=True, kw_only=True)
class Job:
    """A spec to train and the analyses to make of it.

    ``asks``: each epoch waits for leave to go on. ``tracks``: the trackers that listen to the training.
    """

    spec: Spec
    analyses: tuple[str, ...] = ()
    asks: bool = False
    tracks: tuple[Tracker, ...] = ()

    @cached_property
    def name(self) -> str:
        return run_name(self.spec)

    def to_json(self) -> dict[str, Any]:
        """With the file of a task that is in no package: whoever does the job need not have it."""
        source = source_of(self.spec.task.kind)
        return {**to_json(self), "code": source.text if source else None}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Job":
        if data.get("code") is not None:
            run_source(Source(CODE, data["code"]))
        return from_json(cls, {key: value for key, value in data.items() if key != "code"}, "job")


@final
@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to the job whose run has this name."""

    job: str
    kind: EventKind
    data: dict[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True, kw_only=True)
class Failure(Result):
    """Why a run failed; ``final`` if it would fail again."""

    error: str
    final: bool = False
    traceback: list[str] = field(default_factory=list)


@runtime_checkable
class Link(Protocol):
    """What connects a job with whoever gave it."""

    def send(self, event: Event) -> None:
        """Tell what happened."""

    def stopping(self) -> bool:
        """Whether the job was asked to stop and save."""

    def may_go_on(self) -> bool:
        """Wait for the answer to the epoch that was just sent."""


def run_name(spec: Spec) -> str:
    """``addition-5f1c0e6a9b3d``."""
    return f"{spec.task.kind}-{spec_hash(spec)}"


def pool_run(pool: Path, spec: Spec) -> RunFolder | None:
    run = RunFolder(pool / run_name(spec))
    return run if run.file("spec.json").exists() else None


def begin_run(pool: Path, spec: Spec) -> RunFolder:
    """A new run of ``spec`` in the pool; a folder there that is no run is put aside."""
    path = pool / run_name(spec)
    try:
        return create_run(path, spec)
    except TakenError:
        if pool_run(pool, spec) is not None:
            raise
        with refusing(path):
            path.rename(path.with_name(f".{path.name}.{secrets.token_hex(4)}.left"))
        return create_run(path, spec)


def failure(run: RunFolder) -> Failure | None:
    """Why the run failed when it was last tried, or None."""
    try:
        return Failure.from_json(parse_json(run.read(ERROR).decode()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, SpecError, RunError):
        return Failure(error=f"{ERROR} cannot be read")


def keep_failure(run: RunFolder, error: str, *, final: bool, trace: str = "") -> None:
    """Write down why a run failed; ``final`` if it would fail again."""
    found = Failure(error=error, final=final, traceback=trace.splitlines())
    run.write({ERROR: as_json(found.to_json())})


def seconds_of(run: RunFolder | None) -> float | None:
    """How long a run trained; None if it has not finished."""
    summary = None if run is None else run.summary()
    return None if summary is None else float(summary["seconds"])


def is_done(run: RunFolder, analyses: tuple[str, ...]) -> bool:
    return run.summary() is not None and all(run.analysis(name) is not None for name in analyses)
