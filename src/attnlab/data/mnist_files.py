"""The four files of MNIST: their names and pinned SHA-256, the cache, and a directory that a user names.

LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition", 1998.

Raw files are kept in ``$ATTNLAB_CACHE/mnist`` once they were fetched, if their SHA-256 is the pinned one. A
file appears whole or not at all, and one process at a time fetches, so the others find what it brought.

A directory holds IDX, gzipped IDX, or the Parquet files of ``ylecun/mnist``. No hash is pinned there, so
any set of 28 x 28 images in ten classes will do, such as Fashion-MNIST.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from attnlab.data.idx_bytes import LIMIT, check_images, check_labels, gunzip
from attnlab.errors import InputError, StorageError, brief
from attnlab.storage import make_folder, refusing, user_cache, write_bytes

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
NAMES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)

SHA256 = {
    TRAIN_IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    TRAIN_LABELS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    TEST_LABELS: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""Of the raw files; how a mirror packs them does not matter."""

CACHE = "the cache"
SAMPLE = "the bundled sample of MNIST (its first 5,000 training and 1,000 test digits)"

Tell = Callable[[str], None]
"""Hears how far a long piece of work is, many times a second; whoever shows it chooses how often."""
LOCK_SECONDS = 900.0

SUBFOLDERS = ("", "mnist", "MNIST/raw")
PARQUET = {
    "train-00000-of-00001.parquet": (TRAIN_IMAGES, TRAIN_LABELS),
    "test-00000-of-00001.parquet": (TEST_IMAGES, TEST_LABELS),
}


def fingerprint(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def is_canonical(name: str, content: bytes) -> bool:
    """Whether this is the file of MNIST that it is named after, byte for byte."""
    return fingerprint(content) == SHA256[name]


def silent(_: str) -> None:
    """For those who do not want to hear how far it is."""


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


@dataclass(frozen=True, kw_only=True)
class CachedFile:
    """A file of MNIST in the cache; ``right`` if its SHA-256 is the pinned one. None: it is not there."""

    file: str
    bytes: int | None
    digits: int | None
    sha256: str | None
    right: bool


def describe_cache() -> list[CachedFile]:
    """Each of the four files."""
    return [_describe(name) for name in NAMES]


def _describe(name: str) -> CachedFile:
    try:
        content = (cache_folder() / name).read_bytes()
    except OSError:
        return CachedFile(file=name, bytes=None, digits=None, sha256=None, right=False)
    return CachedFile(
        file=name,
        bytes=len(content),
        digits=_count(name, content),
        sha256=fingerprint(content),
        right=is_canonical(name, content),
    )


def _count(name: str, content: bytes) -> int | None:
    check = check_images if "images" in name else check_labels
    try:
        count, _ = check(content, name)
    except InputError:
        return None
    return count


def keep(name: str, content: bytes) -> None:
    """Put one file into the cache, whole or not at all."""
    make_folder(cache_folder())
    write_bytes(cache_folder() / name, content)


@contextmanager
def fetching_alone() -> Iterator[None]:
    """Wait until no other process fetches; a process that ends, however it does, lets go."""
    folder = cache_folder()
    make_folder(folder)
    with refusing(folder):
        try:
            lock = FileLock(folder / ".lock", timeout=LOCK_SECONDS).acquire()
        except Timeout as error:
            raise StorageError(
                f"{folder} is still locked after {LOCK_SECONDS:g} s: another process fetches MNIST; "
                "wait for it or end it"
            ) from error
    with lock:
        yield


def read_directory(directory: Path, tell: Tell) -> dict[str, bytes]:
    """The four files as raw IDX, from the first folder that holds some of them."""
    if not os.path.isdir(directory):  # noqa: PTH112  # unlike Path.is_dir, false for a name that is too long
        raise InputError(f"{brief(str(directory))} is not a folder; name one that holds digits")
    for subfolder in SUBFOLDERS:
        folder = directory / subfolder
        found = {name: path for name in NAMES if (path := find_idx(folder, name))}
        if len(found) == len(NAMES):
            return {name: read_file(path) for name, path in found.items()}
        tables = {name: folder / name for name in PARQUET if (folder / name).is_file()}
        if len(tables) == len(PARQUET):
            from attnlab.data.parquet import read_parquet

            read = [(PARQUET[name], read_parquet(path, tell)) for name, path in tables.items()]
            return {name: file for pair in read for name, file in zip(*pair, strict=True)}
        if found or tables:
            wanted = NAMES if found else PARQUET
            missing = [name for name in wanted if name not in found | tables]
            raise InputError(f"{folder} lacks {', '.join(missing)}")
    raise InputError(
        f"{directory} holds no digits; it needs {', '.join(NAMES)}, raw or with .gz, "
        f"or {' and '.join(PARQUET)}"
    )


def find_idx(folder: Path, name: str) -> Path | None:
    """The file of that name, in any spelling, raw or with .gz."""
    spellings = (name, name.replace("-idx", ".idx"))
    options = [folder / f"{spelling}{ending}" for spelling in spellings for ending in ("", ".gz")]
    return next((path for path in options if path.is_file()), None)


def read_file(path: Path) -> bytes:
    """A file as it is inside of gzip."""
    try:
        size = path.stat().st_size
        if size > LIMIT:
            raise InputError(f"{path} has {size:,} bytes; a file of digits may have {LIMIT:,}")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    return gunzip(content, str(path)) if path.suffix == ".gz" else content
