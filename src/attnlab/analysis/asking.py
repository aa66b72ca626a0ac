"""What a reader says about pictures of one's own, and about single images of its task."""

import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from attnlab.analysis.decoding import Progress, silent
from attnlab.analysis.reading import Images, Reader, chances, images_of
from attnlab.analysis.samples import Sample, read_samples
from attnlab.errors import InputError
from attnlab.tasks.examples import Split
from attnlab.tasks.ink import read_digits
from attnlab.tasks.pictures import pictures_in, read_picture

_PLACE = re.compile(r"(?:(train|valid|test):)?(\d{1,9})")

Asked = tuple[str, UInt8[Tensor, "R C"], list[int] | None]
"""A name, an image as the task has it, and the digits it shows if that is known."""


def expand(inputs: Sequence[str | bytes]) -> list[str | bytes | Path]:
    """The inputs, with the pictures of folders in the place of folders; files are paths."""
    return [each for given in inputs for each in _expanded(given)]


def _expanded(given: str | bytes) -> list[str | bytes | Path]:
    if isinstance(given, bytes) or _PLACE.fullmatch(given.strip()):
        return [given]
    if os.path.isdir(given):  # noqa: PTH112  # unlike Path.is_dir, false for a name that no file can have
        return list(pictures_in(Path(given)))
    if os.path.exists(given):  # noqa: PTH110
        return [Path(given)]
    raise InputError(
        f"{given.strip()!r} is no file; give a picture, a folder of pictures, or test:7 for the test image "
        "number 7"
    )


def ask(
    reader: Reader, inputs: Sequence[str | bytes | Path], *, progress: Progress = silent
) -> list[Sample]:
    """Read files, pictures in bytes, and images of the task such as ``test:7``."""

    @cache
    def split_images(split: Split) -> Images:
        return images_of(reader, split)

    asked: list[Asked] = []
    for given in inputs:
        asked.append(_own_image(given, split_images) if isinstance(given, str) else _picture(reader, given))
        progress(len(asked), len(inputs))
    names, pixels, truths = zip(*asked, strict=True)
    stacked = torch.stack(pixels)
    return read_samples(list(names), stacked, chances(reader, stacked), list(truths))


def _own_image(text: str, images: Callable[[Split], Images]) -> Asked:
    match = _PLACE.fullmatch(text.strip())
    assert match is not None
    split: Split = match[1] or "test"  # type: ignore[assignment]  # the pattern knows no other names
    place, found = int(match[2]), images(split)
    if place >= len(found.truth):
        raise InputError(
            f"{text.strip()!r} is not there; {split} images go from 0 to {len(found.truth) - 1}"
        )
    return f"{split}:{place}", found.pixels[place], found.truth[place].tolist()


def _picture(reader: Reader, source: bytes | Path) -> Asked:
    name = "standard input" if isinstance(source, bytes) else str(source)
    digits = read_digits(read_picture(source, name), name, rows=reader.rows, columns=reader.columns)
    return name, torch.from_numpy(np.ascontiguousarray(digits)), None
