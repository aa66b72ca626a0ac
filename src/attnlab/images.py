"""Tasks whose inputs are images of any size, in grey or colour, to a class or to a class for each cell.

A task over labelled pictures derives from ``LabelledImages``, or from ``attnlab.pictures.Pictures`` if they
lie in a folder. ``ImageTask`` is all that analyses ask of images.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeGuard

from attnlab.errors import InputError
from attnlab.lazy import Later
from attnlab.specs.codec import later
from attnlab.specs.models import IMAGE_MODELS, Augment, ModelSpec, PatchSeq2SeqModel, VitModel
from attnlab.specs.rules import require
from attnlab.specs.task import Reader, Split, Task

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Int, UInt8
    from torch import Tensor

    from attnlab import sets
    from attnlab.data import augmenting, image_files
    from attnlab.data.image_set import ImageSet

    Labelled = tuple[UInt8[Tensor, "N *C Y X"], Int[Tensor, "N cells"]]
else:
    torch, sets = Later("torch"), Later("attnlab.sets")
    augmenting, image_files = Later("attnlab.data.augmenting"), Later("attnlab.data.image_files")

Scale = tuple[float, float]
"""What is subtracted from pixels of 0 to 1, and what they are divided by."""
ImageShape = tuple[int, int, int]
"""Channels, height and width."""

_PARTING = 1998  # the seed of the one shuffle
_ALTERING = 28  # which of a seed's generators


@dataclass(frozen=True, kw_only=True)
class ImageTask(Task):
    """An image shows one of ``classes``, or one in each cell of a grid, said row by row."""

    images: ClassVar[bool] = True
    shows: ClassVar[str] = "image"
    """What one cell is called, in tables and on pages."""
    ink: ClassVar[bool] = False
    """Whether images are ink on dark in grey, one shape in the middle of each cell, as in MNIST."""

    @property
    @abstractmethod
    def image_shape(self) -> ImageShape:
        """Channels (1 or 3), height and width of an image."""

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """The names of what is shown; of a vocabulary they are the first."""

    @property
    @abstractmethod
    def data(self) -> "ImageSet":
        """The images, from the first source that has them."""

    @property
    @abstractmethod
    def scale(self) -> Scale:
        """How pixels are scaled for a model."""

    @abstractmethod
    def pixels(self, split: Split, seed: int = 0) -> "Labelled":
        """The images of a split as they are, and their classes. Grey ones have no axis for channels."""

    def splits(self, seed: int) -> "sets.Splits":
        """Training, validation and test examples: the same for every seed, which only orders them."""
        return sets.Splits(self._examples("train"), self._examples("valid"), self._examples("test"))

    def _examples(self, split: Split) -> "sets.Examples":
        pixels, targets = self.pixels(split)
        images = scaled(pixels, self.scale)
        if self.start is None:
            return sets.Examples((images,), targets[:, 0])
        return sets.Examples((images, sets.shifted(targets, self.start)), targets)

    def cell_pixels(self, split: Split) -> "tuple[UInt8[Tensor, 'M *C y x'], Int[Tensor, 'M']]":
        """The single pictures that the cells of a split are taken from, and their classes."""
        pixels, targets = self.pixels(split)
        return pixels, targets[:, 0]

    def read_picture(self, source: Path | bytes, name: str) -> "UInt8[Tensor, '*C Y X']":
        """A picture of somebody's own as this task has its images."""
        return torch.from_numpy(image_files.fit_picture(source, name, self.image_shape).copy())

    @property
    def rows(self) -> int:
        """Rows of cells in an image."""
        return 1

    @property
    def columns(self) -> int:
        """Cells in a row."""
        return 1

    @property
    def cells(self) -> int:
        """How many of the classes an image shows."""
        return self.rows * self.columns

    @property
    def cell_shape(self) -> ImageShape:
        """Channels, height and width of a cell."""
        channels, height, width = self.image_shape
        return channels, height // self.rows, width // self.columns

    def check_model(self, model: ModelSpec) -> None:
        """Refuse a model for other images."""
        super().check_model(model)
        assert isinstance(model, (*IMAGE_MODELS, PatchSeq2SeqModel))
        if isinstance(model, PatchSeq2SeqModel):
            for name in ("rows", "columns"):
                wanted, given = getattr(self, name), getattr(model, name)
                require(wanted == given, f"model.{name}", given, f"task.{name}, which is {wanted}")
        model.check_image(*self.cell_shape[1:])

    def default_model(self) -> ModelSpec:
        """A vision transformer, or for a sequence an encoder-decoder, on patches that fit."""
        patch = _patch(*self.cell_shape[1:])
        if self.start is None:
            return VitModel(width=64, hidden=256, patch=patch)
        return PatchSeq2SeqModel(width=64, hidden=256, patch=patch, rows=self.rows, columns=self.columns)

    @property
    def vocabulary(self) -> int:
        """The classes, and the start of a sequence."""
        return len(self.classes) + (self.start is not None)

    @property
    def target_length(self) -> int:
        """A class for each cell."""
        return self.cells

    def places(self) -> list[str]:
        """``row,column`` of each cell, in the order in which they are read."""
        if self.start is None:
            return ["class"]
        return [f"{row},{column}" for row in range(self.rows) for column in range(self.columns)]

    def input_words(self) -> str:
        return "pixels of 0 to 1"

    def labels(self) -> list[str]:
        """The names of the classes."""
        return list(self.classes)

    def answer(self, tokens: "Tensor") -> str:
        """The names of the classes that were said."""
        return self.joined(self.symbols(tokens.flatten()))

    def symbols(self, tokens: "Tensor") -> list[str]:
        """The names of classes."""
        return [self.classes[token] if token < len(self.classes) else "⊢" for token in tokens.tolist()]

    def joined(self, names: list[str]) -> str:
        """Names of classes in a row, with spaces where they are longer than a letter."""
        return self._separator.join(names)

    @property
    def _separator(self) -> str:
        return "" if all(len(each) == 1 for each in self.classes) else " "

    def reader(self) -> Reader:
        """Images are drawn or given as files, never written."""
        plain = super().reader()
        return replace(plain, facts={**plain.facts, "separator": self._separator})


def _patch(height: int, width: int) -> int:
    """The side of the smallest patches of which a picture, or a cell of it, has at most 64."""
    sides = [n for n in range(1, min(height, width) + 1) if height % n == 0 and width % n == 0]
    return next((n for n in sides if height * width <= 64 * n * n), sides[-1])


def has_images(task: Task) -> TypeGuard[ImageTask]:
    """Whether ``task`` can be asked all that is asked of images."""
    return task.images


def scaled(images: "UInt8[Tensor, 'N *C Y X']", scale: Scale) -> "Float[Tensor, 'N *C Y X']":
    """Images as models are given them."""
    mean, deviation = scale
    return (images.float() / 255 - mean) / deviation


@dataclass(frozen=True, kw_only=True)
class LabelledImages(ImageTask):
    """Telling the class of an image.

    The training set is parted once and for all, by a shuffle that no seed changes: the last tenth is for
    choosing by, the rest for learning from. The test set is the data's own.
    """

    train: int = 54_000
    """Training images, at most; the first of those that are not validation images."""
    valid: int = 6_000
    """Validation images: the same part of the training set for every seed, at most a tenth of it."""
    test: int = 10_000
    """Test images, at most; the first of the test set."""
    scaling: Literal["unit", "signed", "standard"] = "unit"
    """Pixels from 0 to 1, from -1 to 1, or with mean 0 and deviation 1 over the training images."""
    directory: str = ""
    """A folder with images."""
    augment: Augment = later(Augment())
    """How far training images are moved, rotated, resized and bent, drawn again at each step."""

    def settled(self) -> "LabelledImages":
        """With a directory that is found from everywhere."""
        return replace(self, directory=str(Path(self.directory).absolute())) if self.directory else self

    def splits(self, seed: int) -> "sets.Splits":
        """Training images are altered at each step, if the spec says so."""

        def altered(batch: "sets.Examples", step: int) -> "sets.Examples":
            (images,), generator = batch.inputs, sets.own_generator(seed, _ALTERING, step)
            return sets.Examples((augmenting.augment(images, self.augment, generator),), batch.targets)

        return replace(super().splits(seed), augment=altered if self.augment.any else None)

    def pixels(self, split: Split, seed: int = 0) -> "Labelled":
        data = self.data
        if split == "test":
            return data.test_images[: self.test], data.test_labels[: self.test, None].long()
        chosen = self._parting()[split == "valid"]
        return data.train_images[chosen], data.train_labels[chosen, None].long()

    @cached_property
    def scale(self) -> Scale:
        match self.scaling:
            case "unit":
                return 0.0, 1.0
            case "signed":
                return 0.5, 0.5
            case "standard":
                images, _ = self.pixels("train")
                deviation, mean = torch.std_mean(images.double() / 255, correction=0)
                return mean.item(), deviation.item() or 1.0

    def _parting(self) -> "tuple[Int[Tensor, 'N'], Int[Tensor, 'M']]":
        """Which images of the training set are learned from, and which are chosen by."""
        count = len(self.data.train_labels)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(_PARTING))
        if count < 10:
            raise InputError(
                f"{self.data.source} has {count} training images; at least 10 are needed, of which one in "
                "ten is kept for model selection"
            )
        rest = count - count // 10
        return order[:rest][: self.train], order[rest:][: self.valid]
