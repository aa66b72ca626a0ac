"""Reading files that somebody else may have written: regular files only, up to a size, JSON up to a depth.

What is refused is an ``OSError`` or a ``ValueError`` whose text ends a sentence; who asked for the file
knows what to call it. What the JSON must hold is said by a dataclass and checked by ``specs.codec``.
"""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

MOST_JSON = 2**25
"""Bytes of a JSON file: the largest that an analysis writes has about 2^20, and Python needs 20 times as
much memory for it."""
MOST_SPEC = 2**22
"""Bytes of the JSON of a spec, of an environment or of a summary."""
MOST_LINES = 2**28
"""Bytes of a file of JSON lines, and of what is read as it stands."""
DEEPEST = 100
"""Levels of lists and objects in JSON."""


def read_bytes(path: Path, most: int = MOST_LINES, *, links: bool = True) -> bytes:
    """The content of a regular file of at most ``most`` bytes; a pipe or a device is not waited for.

    Without ``links`` a symbolic link is not followed.
    """
    kinds = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, kinds if links else kinds | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        if not links and error.errno == errno.ELOOP:
            raise ValueError("it is a symbolic link") from error
        raise
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        if found.st_size > most:
            raise ValueError(f"it has {found.st_size:,} bytes; at most {most:,} are read")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def read_text(path: Path, most: int = MOST_JSON) -> str:
    """A regular file as text in UTF-8."""
    return read_bytes(path, most).decode()


def read_json(path: Path, most: int = MOST_JSON) -> Any:
    """The JSON value that a file holds."""
    return parse_json(read_text(path, most))


def parse_json(text: str) -> Any:
    """The value that ``text`` stands for, nested at most ``DEEPEST`` deep."""
    too_deep = f"it nests more than {DEEPEST} levels deep"
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(too_deep) from error
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, list | dict)]
        if not level:
            return value
    raise ValueError(too_deep)


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def parse_json_lines(text: str) -> list[Any]:
    """The values of all finished lines; an unfinished last one is left out."""
    *lines, _unfinished = text.split("\n")
    return [parse_json(line) for line in lines]
