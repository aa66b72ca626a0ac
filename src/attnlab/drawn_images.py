"""Image tasks made of a function that draws one picture.

    @task(image=(16, 16), classes=["circle", "square"])
    def shapes(rng):
        ...
        return picture, "circle"

A picture is an array or a PIL image of this size: whole numbers from 0 to 255, or fractions from 0 to 1;
``image=(16, 16, 3)`` is one in colour. With ``answer="sequence"`` and ``symbols`` the answer is a row of
symbols, always of the same length, which stand side by side in cells of the same width. The pictures are
the same for every seed.
"""

import random
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from attnlab.drawn import TRIES, Drawn, probe
from attnlab.errors import SpecError
from attnlab.images import ImageShape, ImageTask, Scale
from attnlab.lazy import Later
from attnlab.specs.task import Split

if TYPE_CHECKING:
    import numpy as np
    import torch
    from jaxtyping import Int, UInt8
    from torch import Tensor

    from attnlab.data import image_set
    from attnlab.images import Labelled
else:
    np, torch, image_set = Later("numpy"), Later("torch"), Later("attnlab.data.image_set")

Picture = tuple[bytes, tuple[int, ...]]
"""Pixels (channels, height, width) and classes."""

PROBED = 20
"""Pictures that are drawn twice."""


@dataclass(frozen=True, kw_only=True)
class DrawnImages(Drawn, ImageTask):
    """What ``task`` makes of a function that draws pictures."""

    _draws, _probed = "a picture", PROBED
    image_shape: ClassVar[ImageShape]
    classes: ClassVar[tuple[str, ...]]
    sequence: ClassVar[bool]
    scale: ClassVar[Scale] = (0.0, 1.0)

    train: int = 5_000
    """Training images."""
    valid: int = 500
    """Validation images, for model selection."""
    test: int = 500
    """Test images, for the final figure."""

    @property
    def start(self) -> int | None:
        """The token behind the classes."""
        return len(self.classes) if self.sequence else None

    @cached_property
    def columns(self) -> int:
        """As many as the answer of the first picture has symbols."""
        columns = len(probe(self)[0][1])
        width = self.image_shape[2]
        if width % columns:
            raise SpecError(f"{self._name} has a width of {width}, which {columns} symbols cannot share")
        return columns

    def one(self, rng: random.Random) -> Picture:
        """A picture and its classes, both checked."""
        picture, said = self._asked(rng)
        names = tuple(said) if self.sequence else (said,)
        for each in names:
            self._check_class(each)
        return self._pixels(picture), tuple(self.classes.index(each) for each in names)

    def _pixels(self, picture: Any) -> bytes:
        channels, height, width = self.image_shape
        wanted = (height, width) if channels == 1 else (height, width, channels)
        pixels = np.asarray(picture)
        if pixels.shape != wanted:
            raise SpecError(f"{self._name} drew a picture of shape {pixels.shape}; it must be {wanted}")
        if pixels.dtype.kind == "f":
            pixels = pixels * 255
        elif pixels.dtype.kind == "b":
            pixels = pixels.astype(np.uint8) * 255
        if not (pixels.min() >= 0 and pixels.max() <= 255):
            raise SpecError(f"{self._name} drew pixels outside of 0 to 255, or as fractions of 0 to 1")
        plain = pixels.round().astype(np.uint8)
        return (plain if channels == 1 else plain.transpose(2, 0, 1)).tobytes()

    def pixels(self, split: Split, seed: int = 0) -> "Labelled":
        pixels, targets = _drawn(self)
        first = {"test": 0, "valid": self.test, "train": self.test + self.valid}[split]
        part = slice(first, first + getattr(self, split))
        return pixels[part], targets[part]

    def cell_pixels(self, split: Split) -> "tuple[UInt8[Tensor, 'M *C y x'], Int[Tensor, 'M']]":
        """The cells of the pictures."""
        pixels, targets = self.pixels(split)
        return torch.cat(torch.split(pixels, self.cell_shape[2], dim=-1)), targets.T.flatten()

    @cached_property
    def data(self) -> "image_set.ImageSet":
        """What the function draws."""
        (train, labels), (test, asked) = self.pixels("train"), self.pixels("test")
        return image_set.ImageSet(
            train, labels[:, 0], test, asked[:, 0], source=f"drawn by {self._name}", sha256={}
        )


@lru_cache(maxsize=2)
def _drawn(task: DrawnImages) -> "Labelled":
    """All pictures, no two of which are the same, and their classes."""
    count, columns = task.train + task.valid + task.test, task.columns
    rng, found, draws = random.Random(task.kind), dict[bytes, tuple[int, ...]](), 0
    while len(found) < count:
        pixels, said = task.one(rng)
        if len(said) != columns:
            raise SpecError(
                f"{task._name} gave {len(said)} symbols after {columns}; it must be always as many"
            )
        if found.setdefault(pixels, said) != said:
            raise SpecError(f"{task._name} gives a picture two answers; it must have one")
        draws += 1
        if draws > TRIES * count:
            raise SpecError(
                f"{task._name} drew {len(found)} different pictures; {count} are asked for, so set train, "
                "valid and test lower"
            )
    rows = list(found.items())
    rng.shuffle(rows)
    channels, height, width = task.image_shape
    shape = (count, height, width) if channels == 1 else (count, channels, height, width)
    images = torch.frombuffer(bytearray(b"".join(each for each, _ in rows)), dtype=torch.uint8)
    return images.view(shape), torch.tensor([said for _, said in rows])
