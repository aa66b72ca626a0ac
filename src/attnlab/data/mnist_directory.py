"""Digits from a directory that a user names: IDX, gzipped IDX, or the Parquet files of ``ylecun/mnist``.

No hash is pinned here, so any set of 28 x 28 images in ten classes will do, such as Fashion-MNIST.
"""

import os
from pathlib import Path

from attnlab.data.idx_bytes import LIMIT, gunzip
from attnlab.data.mnist_files import (
    NAMES,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    Tell,
)
from attnlab.data.parquet import read_parquet
from attnlab.errors import InputError

SUBFOLDERS = ("", "mnist", "MNIST/raw")
PARQUET = {
    "train-00000-of-00001.parquet": (TRAIN_IMAGES, TRAIN_LABELS),
    "test-00000-of-00001.parquet": (TEST_IMAGES, TEST_LABELS),
}


def read_directory(directory: Path, tell: Tell) -> dict[str, bytes]:
    """The four files as raw IDX, from the first folder that holds some of them."""
    if not os.path.isdir(directory):  # noqa: PTH112  # unlike Path.is_dir, false for a name that is too long
        raise InputError(f"{str(directory)!r} is no directory; name one that holds digits")
    for subfolder in SUBFOLDERS:
        folder = directory / subfolder
        found = {name: path for name in NAMES if (path := find_idx(folder, name))}
        if len(found) == len(NAMES):
            return {name: read_file(path) for name, path in found.items()}
        tables = [folder / name for name in PARQUET if (folder / name).is_file()]
        if len(tables) == len(PARQUET):
            return _read_tables(tables, tell)
        if found or tables:
            raise InputError(f"{folder} lacks {', '.join(_missing(found, tables))}")
    raise InputError(
        f"{directory} holds no digits; it needs {', '.join(NAMES)}, raw or with .gz, "
        f"or {' and '.join(PARQUET)}"
    )


def find_idx(folder: Path, name: str) -> Path | None:
    """The file of that name, in any spelling, raw or with .gz."""
    spellings = (name, name.replace("-idx", ".idx"))
    options = [folder / f"{spelling}{ending}" for spelling in spellings for ending in ("", ".gz")]
    return next((path for path in options if path.is_file()), None)


def _missing(found: dict[str, Path], tables: list[Path]) -> list[str]:
    if found:
        return [name for name in NAMES if name not in found]
    return [name for name in PARQUET if name not in {path.name for path in tables}]


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


def _read_tables(tables: list[Path], tell: Tell) -> dict[str, bytes]:
    files = {}
    for path in tables:
        images, labels = PARQUET[path.name]
        files[images], files[labels] = read_parquet(path, tell)
    return files
