"""Where raw files of MNIST are kept once they were fetched: ``$ATTNLAB_CACHE/mnist``.

A file counts only if its SHA-256 is the pinned one. It appears whole or not at all, and one process at a
time fetches, so that the others find what it brought.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from attnlab.data.mnist_files import NAMES, is_canonical
from attnlab.errors import StorageError
from attnlab.storage import refusing, user_cache, write_bytes

LOCK_SECONDS = 900.0


def cache_folder() -> Path:
    """The folder of the raw files; it need not exist."""
    return user_cache() / "mnist"


def read_cache() -> tuple[dict[str, bytes], str]:
    """The files that are there and whole, and what is wrong with the others, as the end of a sentence."""
    found: dict[str, bytes] = {}
    wrong = []
    for name in NAMES:
        try:
            content = (cache_folder() / name).read_bytes()
        except FileNotFoundError:
            wrong.append(f"lacks {name}")
        except OSError as error:
            wrong.append(f"does not let {name} be read ({(error.strerror or str(error)).lower()})")
        else:
            if is_canonical(name, content):
                found[name] = content
            else:
                wrong.append(f"holds a damaged {name} (its SHA-256 is not the pinned one)")
    if wrong == [f"lacks {name}" for name in NAMES]:
        return found, "is empty"
    return found, ", ".join(wrong)


def keep(name: str, content: bytes) -> None:
    """Put one file into the cache, whole or not at all."""
    folder = cache_folder()
    with refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / name, content)


@contextmanager
def fetching_alone() -> Iterator[None]:
    """Wait until no other process fetches; a process that ends, however it does, lets go."""
    folder = cache_folder()
    with refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", timeout=LOCK_SECONDS)
        try:
            lock.acquire()
        except Timeout as error:
            raise StorageError(
                f"{folder} is still locked after {LOCK_SECONDS:g} s: another process fetches MNIST; "
                "wait for it or end it"
            ) from error
    try:
        yield
    finally:
        lock.release()
