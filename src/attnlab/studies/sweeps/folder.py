"""The folder of a sweep: whose search it is, who works on it, and Optuna's storage.

sweep.json      the search as it was read, the spec it starts from, its seed
trials.db       Optuna's storage
trials.json     the table of trials, and what is drawn from it
best.json       the best spec, as ``attnlab train --spec`` takes it
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock, Timeout
from optuna.exceptions import OptunaError
from optuna.storages import RDBStorage
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from attnlab.errors import LabError, RunError
from attnlab.spec import Spec, to_json
from attnlab.storage import refusing, write_json
from attnlab.studies.sweeps.parts import SweepFile

FORMAT = 1
DATABASE = "trials.db"

optuna.logging.set_verbosity(optuna.logging.ERROR)


def claim_folder(folder: Path, file: SweepFile, base: Spec, seed: int) -> FileLock:
    """Write down what is searched, or refuse a folder that holds another search; keep others out."""
    # How many trials there are to be, and what the file says in vain, may change from start to start.
    search = replace(file, count=None, notes=())
    wanted = {"format": FORMAT, "search": repr(search), "base": to_json(base), "seed": seed}
    path = folder / "sweep.json"
    is_new = not path.exists()
    if not is_new:
        _compare(path, wanted)
    with refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", blocking=False)
        try:
            lock.acquire()
        except Timeout as error:
            raise RunError(f"another process works on the sweep in {folder}") from error
    if is_new:
        write_json(path, wanted)
    return lock


def open_storage(folder: Path) -> RDBStorage:
    """Optuna's storage. The path does not go through a URL, in which some of its signs have a meaning.

    Connections are not pooled: a storage that is refused gives nobody a chance to close a pool.
    """
    connect = partial(sqlite3.connect, folder / DATABASE)
    with storing(folder):
        try:
            return RDBStorage("sqlite://", engine_kwargs={"creator": connect, "poolclass": NullPool})
        except RuntimeError as error:  # written by another version of Optuna
            raise _refusal(folder, error) from error


@contextmanager
def storing(folder: Path) -> Iterator[None]:
    """Turn what Optuna's storage cannot read or write into one sentence."""
    try:
        yield
    except SQLAlchemyError as error:
        raise _refusal(folder, error) from error
    except OptunaError as error:
        raise _refusal(folder, error.__cause__ or error) from error


def _refusal(folder: Path, error: BaseException) -> RunError:
    reason = str(getattr(error, "orig", None) or error).splitlines()[0].strip().rstrip(".")
    return RunError(f"{folder / DATABASE} cannot be used as Optuna's storage ({reason})")


def _compare(path: Path, wanted: dict[str, Any]) -> None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version = found["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read ({type(error).__name__}: {error})") from error
    if version != FORMAT:
        raise RunError(f"{path} has format {version!r}, but this version of attnlab reads format {FORMAT}")
    for key, what in (("search", "sweep file"), ("base", "spec"), ("seed", "seed")):
        if found.get(key) != wanted[key]:
            raise LabError(
                f"{path.parent} holds a sweep with another {what}; choose another folder with --out"
            )
