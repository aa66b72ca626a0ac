"""What people have in memory as images of a task: arrays, tensors, pictures of Pillow, bytes of a file.

An array of the task's own size is taken as it is, ink bright where the task has it so. Any other size is a
picture, which the task reads as it reads a file.
"""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from attnlab.errors import InputError
from attnlab.images import ImageTask

CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class Picture:
    """A picture in memory, and what to call it."""

    name: str
    content: Any


def separate(given: Any, task: ImageTask) -> list[Any] | None:
    """The single images of an array with one axis more than an image of ``task``; None if it is one image,
    or no array.
    """
    if not _is_array(given):
        return None
    shape, sizes = tuple(given.shape), (task.image_shape, task.image_shape[1:])
    if shape in sizes or shape[1:] not in sizes:
        return None
    return list(given)


def pixels_of(picture: Picture, task: ImageTask) -> UInt8[Tensor, "*C Y X"]:
    """An image as ``task`` has it."""
    content = picture.content
    if isinstance(content, bytes):
        return task.read_picture(content, picture.name)
    if isinstance(content, Image.Image):
        return task.read_picture(_file(content), picture.name)
    if not _is_array(content):
        raise InputError(
            f"{picture.name} is of the type {type(content).__name__}; give the name of a file, test:7, an "
            "array, a tensor or a picture of Pillow"
        )
    values = _bytes(np.asarray(content), picture.name)
    if values.shape in (task.image_shape, task.image_shape[1:]):
        grey = task.image_shape[0] == 1
        return torch.from_numpy(values.reshape(task.image_shape[1:] if grey else task.image_shape).copy())
    return task.read_picture(_file(Image.fromarray(_channels_last(values, picture.name))), picture.name)


def _is_array(given: Any) -> bool:
    return isinstance(given, np.ndarray | Tensor)


def _bytes(values: np.ndarray, name: str) -> UInt8[np.ndarray, "..."]:
    """Pixels of 0 to 255; what has fractions goes from 0 to 1."""
    if values.dtype == np.uint8:
        return values
    most = 1.0 if values.dtype.kind in "fb" else 255.0
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    if not (low >= 0 and high <= most):
        raise InputError(
            f"{name} has pixels from {low:g} to {high:g}; give whole numbers of 0 to 255, or fractions of "
            "0 to 1"
        )
    return np.rint(values * (255 / most)).astype(np.uint8)


def _channels_last(values: np.ndarray, name: str) -> np.ndarray:
    if values.ndim == 3 and values.shape[-1] not in CHANNELS and values.shape[0] in CHANNELS:
        values = values.transpose(1, 2, 0)
    if values.ndim == 3 and values.shape[-1] in CHANNELS:
        return np.ascontiguousarray(values[..., 0] if values.shape[-1] == 1 else values)
    if values.ndim == 2:
        return np.ascontiguousarray(values)
    raise InputError(
        f"{name} has the shape {values.shape}, which is not an image; give a height and a width"
    )


def _file(image: Image.Image) -> bytes:
    """As a file without loss."""
    buffer = io.BytesIO()
    try:
        image.save(buffer, format="TIFF")
    except OSError as error:
        raise InputError(f"a picture of the mode {image.mode} cannot be read; convert it first") from error
    return buffer.getvalue()
