"""Tensors from IDX files, and IDX files from tensors."""

import struct

import torch
from jaxtyping import UInt8
from torch import Tensor

from attnlab.data.idx_bytes import CLASSES, IMAGES, LABELS, SIDE, check_images, check_labels
from attnlab.errors import InputError


def read_images(
    content: bytes, name: str, size: tuple[int, int] | None = (SIDE, SIDE)
) -> UInt8[Tensor, "N Y X"]:
    """Images of an IDX file, 0 for the background and 255 for ink; of any size if it is None."""
    count, start = check_images(content, name, size)
    return _values(content, start).reshape(count, *struct.unpack(">2I", content[8:16]))


def read_labels(content: bytes, name: str, classes: int = CLASSES) -> UInt8[Tensor, "N"]:
    """Labels of an IDX file, fewer than ``classes``."""
    _, start = check_labels(content, name, classes)
    return _values(content, start)


def write_images(images: UInt8[Tensor, "N Y X"]) -> bytes:
    """The IDX file of ``images``."""
    return IMAGES + struct.pack(">3I", *images.shape) + _bytes(images)


def write_labels(labels: UInt8[Tensor, "N"]) -> bytes:
    """The IDX file of ``labels``."""
    return LABELS + struct.pack(">I", len(labels)) + _bytes(labels)


def check_counts(images: Tensor, labels: Tensor, images_name: str, labels_name: str) -> None:
    """Refuse images and labels that do not belong together."""
    if len(images) != len(labels):
        raise InputError(
            f"{images_name} holds {len(images):,} images and {labels_name} {len(labels):,} labels; "
            "there must be one label an image"
        )


def _values(content: bytes, start: int) -> UInt8[Tensor, "_"]:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=start)


def _bytes(values: Tensor) -> bytes:
    return values.contiguous().numpy().tobytes()
