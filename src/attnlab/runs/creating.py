"""New folders of runs and of ensembles.

A new folder is filled under its lock, and what makes it a run (``spec.json``) comes last: of two processes
that want the same name one gets the folder and the other is refused, or takes the next name. What a kill
leaves before the spec is there, a manifest and some of the files that it names, is no run, and the next
process that wants the name fills it anew.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, final

from filelock import FileLock, Timeout

from attnlab.errors import RunError, brief
from attnlab.registry import CODE, source_of
from attnlab.runs.environment import ENVIRONMENT, describe_environment
from attnlab.runs.files import LOCK, SPEC, check_name, first_manifest
from attnlab.runs.folder import ENSEMBLE, TRAINING_LOCK, Ensemble, RunFolder
from attnlab.runs.manifest import MANIFEST, read_manifest
from attnlab.specs import Spec, to_json
from attnlab.specs.codec import check_whole
from attnlab.specs.sizes import check_sizes
from attnlab.storage import as_json, make_folder, refuse_link, refusing, write_bytes, write_together

T = TypeVar("T")


@final
class TakenError(RunError):
    """Something lies where a new folder is to be."""


def check_unused(path: Path) -> None:
    """Refuse a place that something lies at."""
    with refusing(path):
        free = not path.exists() or (path.is_dir() and not _contents(path))
    if not free:
        raise TakenError(f"{path} exists already and is not empty; choose another folder for out")


def numbered(folder: Path, name: str, create: Callable[[Path], T]) -> T:
    """What ``create`` makes at ``folder/name``, or with -2, -3, ... behind it if that is taken."""
    for number in count(1):
        try:
            return create(folder / (name if number == 1 else f"{name}-{number}"))
        except TakenError:
            continue
    raise AssertionError


def create_run(path: Path, spec: Spec, more: Mapping[str, bytes] | None = None) -> RunFolder:
    """A new folder with the spec and the environment in it, and ``more`` files; an existing one is refused,
    and so is a task from outside that breaks a rule.
    """
    check_unused(path)
    plain = to_json(spec)
    check_whole(plain)
    check_sizes(spec)
    files = {**_first_files(spec), **(more or {}), SPEC: as_json(plain)}
    return place_run(path, files, first_manifest(files))


def place_run(path: Path, files: Mapping[str, bytes], manifest: bytes) -> RunFolder:
    """A new folder with all files of a run, which ``manifest`` binds; an existing one is refused."""
    with _claimed(path):
        for name in files:
            check_name(name)
            make_folder((path / name).parent)
        write_together(
            {path / name: files[name] for name in sorted(files, key=lambda name: name == SPEC)},
            ready=lambda: write_bytes(path / MANIFEST, manifest),
        )
    return RunFolder(path)


def _first_files(spec: Spec) -> dict[str, bytes]:
    """Found out before there is a folder, since it takes a while."""
    if not type(spec.task).__module__.startswith("attnlab."):
        from attnlab.checks import check_task

        check_task(spec.task, spec.seed)
    files = {ENVIRONMENT: as_json(describe_environment().to_json())}
    if spec.source:
        source = source_of(spec.task.kind)  # as it was when the spec was made
        if source is None or source.sha256 != spec.source:
            raise RunError(
                f"the file of the task {brief(spec.task.kind)} is not the one that the spec names"
            )
        files[CODE] = source.text.encode()
    return files


def create_ensemble(path: Path, runs: Sequence[RunFolder], found: dict[str, Any]) -> Ensemble:
    """A new folder that names ``runs``, with what was found about them; an existing one is refused."""
    with _claimed(path):
        names = [run.name if run.shipped else os.path.relpath(run.path, path) for run in runs]
        write_bytes(path / ENSEMBLE, as_json({**found, "runs": names}))
    return Ensemble(path)


@contextmanager
def _claimed(path: Path) -> Iterator[None]:
    """Have an unused folder alone."""
    check_unused(path)
    make_folder(path)
    refuse_link(path / TRAINING_LOCK)
    with refusing(path):
        try:
            lock = FileLock(path / TRAINING_LOCK, blocking=False).acquire()
        except Timeout as error:
            raise TakenError(f"another process is making {path}; choose another folder for out") from error
    with lock:
        check_unused(path)  # as it is now that nobody else can fill it
        yield


def _contents(path: Path) -> list[str]:
    """What lies in a folder but locks, halves of files, and what a kill has left of a new run."""
    names = [each.name for each in path.iterdir() if not _is_left(each.name)]
    if MANIFEST in names and SPEC not in names:
        manifest = read_manifest(path)
        expected = {MANIFEST, *(manifest.files if manifest else ())}
        return [] if expected >= {*names} else names
    return names


def _is_left(name: str) -> bool:
    return name in (TRAINING_LOCK, LOCK) or (name.startswith(".") and name.endswith(".part"))
