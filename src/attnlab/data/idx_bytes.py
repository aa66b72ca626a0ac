"""IDX, the format of the MNIST files, as bytes: a magic number, the sizes, then one byte a value.

Images: ``00 00 08 03``, then N, height and width as big-endian 32-bit integers, then N * 28 * 28 bytes.
Labels: ``00 00 08 01``, then N, then N bytes. Gzip around it is unpacked piece by piece, so that a small
file cannot ask for all memory. Every refusal names the file and says what would be right.
"""

import gzip
import math
import struct
import zlib
from io import BytesIO

from attnlab.errors import InputError

SIDE = 28
CLASSES = 10
LIMIT = 256 * 2**20
"""Bytes that one file may hold when unpacked: five times the largest of MNIST."""

IMAGES, LABELS = b"\0\0\x08\x03", b"\0\0\x08\x01"
"""The magic numbers."""
_GZIP = b"\x1f\x8b"
_PIECE = 2**20


def gunzip(content: bytes, name: str, limit: int = LIMIT) -> bytes:
    """Unpack gzip, and stop as soon as there is more than ``limit``."""
    if not content.startswith(_GZIP):
        hint = "; it is IDX already, so take .gz off its name" if content[:2] == b"\0\0" else ""
        raise InputError(
            f"{name} is not a gzip file: it starts with {_hex(content)}, not {_hex(_GZIP)}{hint}"
        )
    unpacked = bytearray()
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as file:
            while piece := file.read(_PIECE):
                unpacked += piece
                if len(unpacked) > limit:
                    raise InputError(f"{name} unpacks to more than {limit:,} bytes, the most it may hold")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name} is a damaged gzip file: {str(error).lower().rstrip('.')}") from error
    return bytes(unpacked)


def check_images(content: bytes, name: str, size: tuple[int, int] | None = (SIDE, SIDE)) -> tuple[int, int]:
    """How many images an IDX file holds, and where they begin, once the whole file is known to be right."""
    _check_magic(content, name, IMAGES, "images")
    count, height, width = _sizes(content, name, 3)
    if size is not None and (height, width) != size:
        raise InputError(f"{name} holds images of {height} x {width}; they must be {size[0]} x {size[1]}")
    _check_length(content, name, 16, (count, height, width))
    return count, 16


def check_labels(content: bytes, name: str, classes: int = CLASSES) -> tuple[int, int]:
    """The same of labels, from 0 on."""
    _check_magic(content, name, LABELS, "labels")
    (count,) = _sizes(content, name, 1)
    _check_length(content, name, 8, (count,))
    labels = content[8:]
    if (worst := max(labels)) >= classes:
        place = labels.index(worst)
        raise InputError(f"{name} has label {worst} at place {place}; labels are 0 to {classes - 1}")
    return count, 8


def _check_magic(content: bytes, name: str, magic: bytes, what: str) -> None:
    start = content[:4]
    if start == magic:
        return
    hint = ""
    if start[:2] == _GZIP:
        hint = "; it is gzip, so its name should end in .gz"
    elif start in (IMAGES, LABELS):
        hint = f"; it holds {'images' if start == IMAGES else 'labels'}, so two files may be swapped"
    raise InputError(f"{name} starts with {_hex(start)}, but a file of {what} with {_hex(magic)}{hint}")


def _sizes(content: bytes, name: str, number: int) -> tuple[int, ...]:
    """The ``number`` sizes after the magic number."""
    end = 4 + 4 * number
    if len(content) < end:
        raise InputError(f"{name} ends within its head: it has {len(content)} bytes and needs {end}")
    return struct.unpack(f">{number}I", content[4:end])


def _check_length(content: bytes, name: str, start: int, shape: tuple[int, ...]) -> None:
    """Refuse a body that is not exactly what the head promises."""
    if shape[0] == 0:
        raise InputError(f"{name} holds nothing: its head says 0; there must be at least one")
    there, want = len(content), start + math.prod(shape)
    if there < want:
        raise InputError(f"{name} is cut short: it has {there:,} bytes, and its head says {want:,}")
    if there > want:
        raise InputError(f"{name} goes on too long: it has {there:,} bytes, and its head says {want:,}")


def _hex(content: bytes) -> str:
    return content[:4].hex(" ") or "nothing"
