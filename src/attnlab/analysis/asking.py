"""What a reader says about pictures of one's own, and about single images of its task."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from attnlab.analysis.image_classifier import ImageClassifier, Images
from attnlab.analysis.samples import Sample, read_samples
from attnlab.data.pictures import pictures_in
from attnlab.errors import InputError
from attnlab.progress import Progress, silent
from attnlab.spec import Split

_PLACE = re.compile(r"(?:(train|valid|test):)?(\d{1,9})")

Asked = tuple[str, UInt8[Tensor, "*C Y X"], list[int] | None]
"""A name, an image as the task has it, and the classes it shows if that is known."""


@dataclass(frozen=True)
class Refused:
    """An input that cannot be read, and why."""

    name: str
    error: InputError

    def to_json(self) -> dict[str, str]:
        """Beside samples, which have an output instead."""
        return {"input": self.name, "error": str(self.error)}


Given = str | bytes | Path | Refused


def expand(inputs: Sequence[str | bytes]) -> list[Given]:
    """The inputs, with the pictures of folders in the place of folders; files are paths."""
    found: list[Given] = []
    for given in inputs:
        try:
            found += _expanded(given)
        except InputError as error:
            found.append(Refused(_name(given), error))
    return found


def _expanded(given: str | bytes) -> Sequence[Given]:
    if isinstance(given, bytes):
        return [given]
    if os.path.isdir(given):  # noqa: PTH112  # unlike Path.is_dir, false for a name that no file can have
        return pictures_in(Path(given))
    if os.path.exists(given):  # noqa: PTH110
        return [Path(given)]
    if _PLACE.fullmatch(given.strip()):
        return [given]
    raise InputError(
        f"{given.strip()!r} is no file; give a picture, a folder of pictures, or test:7 for the test image "
        "number 7"
    )


def ask(reader: ImageClassifier, inputs: Sequence[Given], *, progress: Progress = silent) -> list[Sample]:
    """Read files, pictures in bytes, and images of the task such as ``test:7``."""
    samples: list[Sample] = []
    for found in ask_each(reader, inputs, progress=progress):
        if isinstance(found, Refused):
            raise found.error
        samples.append(found)
    return samples


def ask_each(
    reader: ImageClassifier, inputs: Sequence[Given], *, progress: Progress = silent
) -> list[Sample | Refused]:
    """The same, but what cannot be read is told in its place."""

    @cache
    def split_images(split: Split) -> Images:
        return reader.images(split)

    opened: list[Asked | Refused] = []
    for given in inputs:
        opened.append(_opened(reader, given, split_images))
        progress(len(opened), len(inputs))
    samples = iter(_read(reader, [each for each in opened if not isinstance(each, Refused)]))
    return [each if isinstance(each, Refused) else next(samples) for each in opened]


def _opened(reader: ImageClassifier, given: Given, images: Callable[[Split], Images]) -> Asked | Refused:
    if isinstance(given, Refused):
        return given
    try:
        return _own_image(given, images) if isinstance(given, str) else _picture(reader, given)
    except InputError as error:
        return Refused(_name(given), error)


def _read(reader: ImageClassifier, asked: list[Asked]) -> list[Sample]:
    if not asked:
        return []
    names, pixels, truths = zip(*asked, strict=True)
    stacked = torch.stack(pixels)
    return read_samples(reader.task, list(names), stacked, reader.predict_proba(stacked), list(truths))


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


def _picture(reader: ImageClassifier, source: bytes | Path) -> Asked:
    name = _name(source)
    return name, reader.task.read_picture(source, name), None


def _name(given: str | bytes | Path) -> str:
    return "standard input" if isinstance(given, bytes) else str(given).strip()
