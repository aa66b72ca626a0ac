"""Writing files so that a reader sees the old content or the new, never a half.

Content goes to a temporary file in the same folder, is flushed to the disk and then renamed over the
target, which POSIX makes atomic; then the folder is flushed, so that the new name outlives a power cut.
Each write has a temporary file of its own, which must not exist before: two writers never meet in one, and
a link that somebody has put there is not followed. A disk that refuses (full, read-only) gives a
``StorageError`` and leaves what was there.
"""

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attnlab.errors import ECHOED, InputError, StorageError, brief, shortened


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` about ``path`` into a ``StorageError``."""
    try:
        yield
    except OSError as error:
        reason, name = (error.strerror or str(error)).lower(), shortened(str(path), ECHOED)
        raise StorageError(
            f"cannot write {name}: {reason}; nothing that was saved before is lost, "
            "so free some space or choose another folder, then try again"
        ) from error


def user_cache() -> Path:
    """Where things are kept that can be had again: ``$ATTNLAB_CACHE``, or a folder in the user's home."""
    folder = os.environ.get("ATTNLAB_CACHE")
    if folder:
        return Path(folder)
    try:
        return Path.home() / ".cache" / "attnlab"
    except RuntimeError:  # a user that the system does not know has no home, so nothing is kept
        return Path("/nonexistent/.cache/attnlab")


def make_folder(path: Path) -> None:
    """The folder ``path`` and those above it, if they are not there yet."""
    with refusing(path):
        made = [each for each in (path, *path.parents) if not each.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for each in made:
            _flush_folder(each.parent)


def refuse_link(path: Path) -> None:
    """Refuse to write where ``path`` is a symbolic link: it may lead to any file of the user."""
    with refusing(path):
        linked = path.is_symlink()
    if linked:
        raise StorageError(
            f"cannot write {path}: it is a symbolic link, which leads to {path.readlink()}; "
            "remove the link if you do not know it"
        )


def safe_name(name: str) -> str:
    """``name`` as any disk takes it."""
    return re.sub(r"[^\w.+-]", "-", name)


def check_out(out: str | Path, *endings: str, folder: bool = False) -> None:
    """Refuse a file that ends otherwise, and a place for which no folder can be made."""
    if not out:
        return
    path = Path(out)
    with refusing(path):
        taken, is_file = path.is_dir(), path.suffix in endings
        holder = path.parent if is_file else path
        there = next((each for each in (holder, *holder.parents) if each.exists()), Path())
        blocked = not there.is_dir()
    if not is_file and not (folder and (taken or not path.suffix)):
        known = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        rule = f"give a file that ends in {known}, or a folder" if folder else f"it must end in {known}"
        raise InputError(f"out is {brief(out)}; {rule}")
    if is_file and taken:
        raise StorageError(f"cannot write {path}: it is a folder")
    if blocked:
        raise StorageError(f"cannot write {path}: {there} is not a folder")


_STALE = 3600.0
"""Seconds after which nobody still writes to a temporary file."""


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the content of ``path`` atomically."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes], ready: Callable[[], None] = lambda: None) -> None:
    """Replace the content of several files, each atomically, in this order.

    ``ready`` is called once all new content is on the disk, under temporary names, and before the first
    file is replaced.
    """
    temporaries: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            with refusing(path):
                temporaries[path] = _write_temporary(path, content)
        ready()
        for path in contents:
            with refusing(path):
                temporaries[path].replace(path)
                del temporaries[path]
                _flush_folder(path.parent)  # each: without a journal names may reach the disk in any order
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)
    for path in contents:
        clear_temporaries(path, older_than=_STALE)


def _write_temporary(path: Path, content: bytes) -> Path:
    """A new file beside ``path`` that is on the disk."""
    temporary = path.with_name(f"{_temporary(path)}{secrets.token_hex(8)}{_PART}")
    kinds = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(temporary, kinds, 0o666)  # outside: what was there before us is not ours to remove
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def clear_temporaries(path: Path, *, older_than: float = 0.0) -> None:
    """Remove what killed writers of ``path`` have left, if it is so many seconds old."""
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            ours = entry.name.startswith(_temporary(path)) and entry.name.endswith(_PART)
            if ours and time.time() - entry.stat(follow_symlinks=False).st_mtime >= older_than:
                Path(entry).unlink()


_PART = ".part"


def _temporary(path: Path) -> str:
    """How names of temporary files for ``path`` begin; as long as any disk takes."""
    return f".{path.name[:40]}."


def _flush_folder(path: Path) -> None:
    """Have the names in a folder on the disk, where the system lets folders be flushed."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def flush(path: Path) -> None:
    """Have on the disk what was appended to ``path``, if it is there."""
    with refusing(path), suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_text(path: Path, content: str) -> None:
    """Replace the content of ``path`` atomically by text in UTF-8."""
    write_bytes(path, content.encode())


def write_json(path: Path, value: Any) -> None:
    """Replace the content of ``path`` atomically by JSON that people can read."""
    write_bytes(path, as_json(value))


def as_json(value: Any) -> bytes:
    """JSON that people can read, as it lies in files."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def append_json_line(path: Path, value: Any) -> None:
    """Add one line of JSON. A process killed here leaves at most one unfinished last line."""
    refuse_link(path)
    with refusing(path), path.open("ab") as file:
        file.write(json.dumps(value).encode() + b"\n")
