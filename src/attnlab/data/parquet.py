"""Digits in Parquet, as the data set ``ylecun/mnist`` holds them: PNG images and labels in columns.

pyarrow and pillow are imported only when such a file is read. A file is judged by what it claims before
anything is unpacked: its size, its rows, its columns, and the size in each PNG's head.
"""

import math
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from attnlab.data.idx import write_images, write_labels
from attnlab.data.idx_bytes import CLASSES, LIMIT, SIDE
from attnlab.errors import InputError

FILE_LIMIT = 64 * 2**20
ROW_LIMIT = LIMIT // SIDE**2
PNG_LIMIT = 2**16

_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"
_BATCH = 1000


@contextmanager
def opened(path: Path, most: float = math.inf) -> Iterator[Any]:
    """A Parquet file whose head makes good claims; damage that is found meanwhile is refused."""
    try:
        from pyarrow.parquet import ParquetFile

        if (size := path.stat().st_size) > most:
            raise InputError(f"{path} has {size:,} bytes; a Parquet file of digits may have {most:,}")
        with ParquetFile(path, pre_buffer=False) as file:
            there = {file.schema.column(number).path for number in range(len(file.schema))}
        with ParquetFile(path, pre_buffer=False, read_dictionary=list(there & {"image.bytes"})) as file:
            _check_claims(path, file)
            yield file
    except InputError:
        raise
    except Exception as error:  # damage makes pyarrow raise almost anything
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path} is not a readable Parquet file: {reason}") from error


def read_parquet(path: Path, tell: Callable[[str], None]) -> tuple[bytes, bytes]:
    """The same images and labels as two IDX files."""
    pixels, labels = bytearray(), bytearray()
    with warnings.catch_warnings(action="error"), opened(path, FILE_LIMIT) as file:  # pillow may only warn
        rows = file.metadata.num_rows
        for image, label in rows_of(file):
            place = len(labels)
            pixels += _decode(image, f"{path}, row {place}")
            if label is None or not 0 <= label < CLASSES:
                raise InputError(f"{path}, row {place} has label {label}; labels are 0 to {CLASSES - 1}")
            labels.append(label)
            if place % _BATCH == 0:
                tell(f"{path.name}: {place:,} of {rows:,} images")
    if len(labels) != rows:
        raise InputError(f"{path} is damaged: it holds {len(labels):,} rows, but its head says {rows:,}")
    images = torch.frombuffer(pixels, dtype=torch.uint8).reshape(-1, SIDE, SIDE)
    return write_images(images), write_labels(torch.frombuffer(labels, dtype=torch.uint8))


def _check_claims(path: Path, file: Any) -> None:
    """Refuse a file by its head."""
    from pyarrow import types

    head = file.metadata
    if not 0 < head.num_rows <= ROW_LIMIT:
        raise InputError(f"{path} has {head.num_rows:,} rows; there must be 1 to {ROW_LIMIT:,}")
    unpacked = sum(head.row_group(place).total_byte_size for place in range(head.num_row_groups))
    if unpacked > LIMIT:
        raise InputError(f"{path} unpacks to {unpacked:,} bytes; it may hold {LIMIT:,}")
    columns = {field.name: field.type for field in file.schema_arrow}
    image, label = columns.get("image"), columns.get("label")
    inner = {field.name: field.type for field in image} if image and types.is_struct(image) else {}
    content = inner.get("bytes")
    if content and types.is_dictionary(content):
        content = content.value_type
    if not (content and types.is_binary(content) and label and types.is_integer(label)):
        there = ", ".join(f"{name} ({kind})" for name, kind in columns.items())
        raise InputError(
            f"{path} has the columns {there}; digits need image, a struct with binary bytes, "
            "and label, an integer"
        )


def rows_of(file: Any) -> Iterator[tuple[bytes | None, int | None]]:
    """Images and labels, row by row. Images are read as Parquet stores them, the same bytes once: written
    out, a small file may stand for all memory.
    """
    for batch in file.iter_batches(_BATCH, columns=["image.bytes", "label"], use_threads=False):
        images = batch.column("image").field("bytes")
        if (size := images.dictionary.nbytes) > LIMIT:
            raise InputError(f"{_BATCH:,} rows hold {size:,} bytes of images; they may hold {LIMIT:,}")
        known = images.dictionary.to_pylist()
        chosen = [None if each is None else known[each] for each in images.indices.to_pylist()]
        yield from zip(chosen, batch.column("label").to_pylist(), strict=True)


def _decode(content: bytes | None, name: str) -> bytes:
    """Pixels of a PNG; its size is read from its head before anything is unpacked."""
    from PIL import Image

    if content is None or not content.startswith(_PNG) or len(content) < len(_PNG) + 8:
        raise InputError(f"{name} holds no PNG image")
    if len(content) > PNG_LIMIT:
        raise InputError(f"{name} holds a PNG of {len(content):,} bytes; it may have {PNG_LIMIT:,}")
    width, height = struct.unpack_from(">2I", content, len(_PNG))
    if (height, width) != (SIDE, SIDE):
        raise InputError(f"{name} holds an image of {height} x {width}; it must be {SIDE} x {SIDE}")
    try:
        with Image.open(BytesIO(content), formats=["PNG"]) as image:
            if image.size != (SIDE, SIDE):  # a second head within
                raise InputError(f"{name} holds a PNG with two sizes; it must be {SIDE} x {SIDE}")
            if image.mode != "L":
                raise InputError(f"{name} holds an image of mode {image.mode}; it must be grey (L)")
            return image.tobytes()
    except InputError:
        raise
    except Exception as error:  # damage makes pillow raise almost anything
        raise InputError(f"{name} holds a damaged PNG: {error}") from error
