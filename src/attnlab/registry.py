"""Where tasks are found: by name, by entry point, or in a Python file.

A package offers a task under a name in its ``pyproject.toml``, as attnlab does for its own:

    [project.entry-points."attnlab.tasks"]
    reverse = "my_package.tasks:Reverse"

A file is code, and code that came with a run folder is never run by surprise. A user who names a file
trusts the bytes that it has then: their SHA-256 is remembered, so that the runs trained with them open
without a word. Any other code in a run folder needs the user's ``--trust``.
"""

import hashlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from attnlab.errors import RunError, SpecError, StorageError, brief, nearest
from attnlab.reading import MOST_SPEC, read_bytes, read_json
from attnlab.storage import make_folder, user_cache, write_json

if TYPE_CHECKING:
    from attnlab.specs.task import Task

T = TypeVar("T", bound=type)

GROUP = "attnlab.tasks"
CODE = "task.py"
"""Where a run keeps the file that defines its task."""


@dataclass(frozen=True)
class Source:
    """A Python file that defines tasks."""

    path: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


class ChangedTaskWarning(UserWarning):
    """A run's task is not the one that it was trained with."""


_tasks: dict[str, "type[Task]"] = {}
_sources: dict[str, Source] = {}
_running: list[Source] = []
_trust: list[bool] = [False]


def register(task: T) -> T:
    """Let ``task`` be found by its ``kind``: a decorator for the class of a task of your own.

    >>> @register
    ... class Halves(Task):
    ...     kind = "halves"
    >>> Halves.kind
    'halves'
    """
    kind = vars(task)["kind"]
    if _running and kind in _offered():
        raise SpecError(f"{brief(kind)} is the name of a task of an installed package; rename yours")
    _tasks[kind] = task
    _sources.pop(kind, None)
    if _running:
        _sources[kind] = _running[-1]
    return task


def task_names() -> list[str]:
    """The tasks that can be found by name."""
    return sorted({*_tasks, *_offered()})


def find_task(name: str) -> "type[Task]":
    """The task that goes by ``name``, or that ``FILE.py`` or ``FILE.py:NAME`` defines."""
    file, _, chosen = name.partition(":")
    if file.endswith(".py"):
        return _chosen(tasks_in(file), file, chosen)
    if name not in _tasks:
        offered = _offered()
        if name not in offered:
            raise SpecError(f"unknown task {brief(name)}{nearest(name, task_names())}")
        _tasks[name] = _loaded(offered[name])
    return _tasks[name]


def source_of(kind: str) -> Source | None:
    """The file that a task came from; None for one of a package."""
    return _sources.get(kind)


def trust_all() -> None:
    """Run whatever code a run folder holds from now on: what ``--trust`` says."""
    _trust[0] = True


@contextmanager
def trusting(trust: bool) -> Iterator[None]:
    """The same while the context is open, if ``trust`` is true."""
    before = _trust[0]
    _trust[0] = before or trust
    try:
        yield
    finally:
        _trust[0] = before


def run_source(source: Source) -> "list[type[Task]]":
    """Execute a file; the tasks that it defines, which are registered."""
    known, module = dict(_tasks), ModuleType(f"attnlab_task_{source.sha256[:12]}")
    module.__file__ = source.path
    sys.modules[module.__name__] = module  # dataclasses look their module up
    _running.append(source)
    try:
        _execute(module, source)
        for value in list(vars(module).values()):
            own = _is_task(value) and value.__module__ == module.__name__
            if own and _sources.get(value.kind) is not source:  # what @task made is there already
                register(value)
    finally:
        _running.pop()
    return [task for task in list(_tasks.values()) if known.get(task.kind) is not task]


def require_code(task: object, sha256: str, file: Path) -> None:
    """Have the task of a run ready, whose spec names the file by its SHA-256 and keeps a copy of it.

    ``task`` is the task's JSON, which may be damaged.
    """
    kind = str(task.get("kind")) if isinstance(task, dict) else ""
    source = source_of(kind)
    if source is not None or kind in _tasks or kind in _offered():
        if source is None or source.sha256 != sha256:
            where = "an installed package" if source is None else source.path
            warnings.warn(
                f"the task {kind!r} of {where} is not the one that run {file.parent} was trained with",
                ChangedTaskWarning,
                stacklevel=2,
            )
        return
    try:
        kept = Source(str(file), read_bytes(file, MOST_SPEC, links=False).decode())
    except (OSError, ValueError) as error:
        raise RunError(f"run {file.parent} is damaged: {file.name} cannot be read ({error})") from error
    if kept.sha256 != sha256:
        raise RunError(f"run {file.parent} is damaged: {file.name} is not the file that its spec names")
    if not _trust[0] and sha256 not in _trusted():
        raise RunError(
            f"run {file.parent} has a task of its own, {brief(kind)}, whose code in {file} would be run; "
            "if you know that file, name it (tasks), or allow the code of all runs (trust)"
        )
    run_source(kept)


def tasks_in(path: str) -> "dict[str, type[Task]]":
    """The tasks that a file defines, which are registered; naming a file means trusting its code."""
    try:
        content = BytesIO(read_bytes(Path(path), MOST_SPEC))
        source = Source(path, TextIOWrapper(content, encoding="utf-8-sig").read())  # any ends of lines
    except FileNotFoundError as error:
        raise SpecError(f"there is no file {path} to take a task from") from error
    except (OSError, ValueError) as error:
        raise SpecError(f"{path} cannot be read as Python ({error})") from error
    same = [task for kind, task in list(_tasks.items()) if _sources.get(kind) == source]
    found = {task.kind: task for task in same or run_source(source)}
    _remember(source.sha256)
    if not found:
        raise SpecError(f"{path} defines no task; decorate a function with @attnlab.task")
    return found


def _chosen(found: "dict[str, type[Task]]", path: str, name: str) -> "type[Task]":
    """A task of a file; the only one, if none is named."""
    if not name and len(found) > 1:
        raise SpecError(f"{path} defines {', '.join(found)}; choose one, as in {path}:{next(iter(found))}")
    wanted = name or next(iter(found))
    for kind, task in found.items():
        if wanted in (kind, task.__name__):
            return task
    raise SpecError(f"{path} defines no task {brief(wanted)}{nearest(wanted, found)}")


def _execute(module: ModuleType, source: Source) -> None:
    try:
        exec(compile(source.text, source.path, "exec"), vars(module))
    except SpecError as error:
        raise SpecError(f"{source.path}: {error}") from error
    except (Exception, SystemExit) as error:  # it is the user's program
        raise SpecError(f"{source.path} cannot be run ({type(error).__name__}: {error})") from error


def _is_task(value: object) -> bool:
    """Whether it is a task that can be made; asked without importing the class."""
    if not isinstance(value, type) or getattr(value, "__abstractmethods__", None):
        return False
    return any(base.__module__ == "attnlab.specs.task" for base in value.__mro__) and "kind" in vars(value)


@cache
def _offered() -> dict[str, EntryPoint]:
    """What installed packages offer; looking for it takes milliseconds."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _loaded(point: EntryPoint) -> "type[Task]":
    try:
        return point.load()
    except Exception as error:  # it is somebody else's package
        raise SpecError(
            f"the task {brief(point.name)} of {point.value} cannot be imported ({error})"
        ) from error


def _trust_file() -> Path:
    return user_cache() / "trusted.json"


def _trusted() -> list[str]:
    """SHA-256 of the files that this user has named."""
    with suppress(OSError, ValueError):
        found = read_json(_trust_file())
        return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    return []


def _remember(sha256: str) -> None:
    known = _trusted()
    if sha256 not in known:
        with suppress(OSError, StorageError):  # then --trust has to be said
            make_folder(_trust_file().parent)
            write_json(_trust_file(), [*known, sha256])
