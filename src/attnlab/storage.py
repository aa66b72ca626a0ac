"""Writing files so that a reader sees the old content or the new, never a half.

Content goes to a temporary file in the same folder, is flushed to the disk and then renamed over the
target, which POSIX makes atomic. A disk that refuses (full, read-only) gives a ``StorageError`` and
leaves what was there.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.errors import InputError, StorageError


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` about ``path`` into a ``StorageError``."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(
            f"cannot write {path}: {reason}; nothing that was saved before is lost, "
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
        path.mkdir(parents=True, exist_ok=True)


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
        raise InputError(f"out is {out!r}; {rule}")
    if is_file and taken:
        raise StorageError(f"cannot write {path}: it is a folder")
    if blocked:
        raise StorageError(f"cannot write {path}: {there} is no folder")


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the content of ``path`` atomically."""
    with refusing(path):
        temporary = path.with_name(f".{path.name}.part")  # one name, so that a kill leaves no heap of them
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_text(path: Path, content: str) -> None:
    """Replace the content of ``path`` atomically by text in UTF-8."""
    write_bytes(path, content.encode())


def write_json(path: Path, value: Any) -> None:
    """Replace the content of ``path`` atomically by JSON that people can read."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def append_json_line(path: Path, value: Any) -> None:
    """Add one line of JSON. A process killed here leaves at most one unfinished last line."""
    with refusing(path), path.open("ab") as file:
        file.write(json.dumps(value).encode() + b"\n")


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """All finished lines; an unfinished last one is left out."""
    if not path.exists():
        return []
    *lines, _unfinished = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines]
