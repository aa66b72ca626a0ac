"""What can be given to a subject, asked of its task: texts, images, examples of a split."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.ablate.ablation import TRAINING
from attnlab.analysis.given_images import Picture, pixels_of
from attnlab.analysis.samples import find_image
from attnlab.analysis.subjects import NUMBERED
from attnlab.devices import to_device_of
from attnlab.errors import InputError, brief
from attnlab.explorer.kept import Kept
from attnlab.explorer.scene import (
    ExampleInput,
    ImageForm,
    Input,
    PixelsInput,
    ShownInput,
    TextInput,
    Values,
)
from attnlab.images import Scale, has_images, scaled
from attnlab.model import Model
from attnlab.sets import Examples, Splits, one_example, shifted
from attnlab.specs import ModelSpec, Split, Task
from attnlab.specs.task import KeySets

MOST_TOKENS = 512
"""Tokens of an input that is explored, at most: patterns are shown whole."""


@dataclass(frozen=True)
class Given:
    """One input as the model takes it, with what is shown of it; a drawing has no ``targets`` (1, *T)."""

    inputs: tuple[Tensor, ...]
    targets: Tensor | None
    shown: ShownInput

    @property
    def right(self) -> Tensor | None:
        """What it is right to say, if that is known."""
        return None if self.shown.truth is None else self.targets


@dataclass(frozen=True)
class Inputs:
    """Everything that can be given to a model; ``scale`` is that of its images, ``patch`` the side of the
    patches that tokens stand for.
    """

    task: Task
    model: Model
    seed: int
    scale: Scale | None
    typed: bool
    """Whether inputs can be typed or drawn, and are not only chosen among examples."""
    spec: ModelSpec | None = None
    """What the model was built by; None of a wrapped one."""
    kept: Kept[str] = field(default_factory=Kept)
    """Examples, which all copies of a model share."""

    def split(self, name: Split) -> Examples:
        """The examples of a split; images are scaled when they are asked for."""
        if has_images(self.task):
            return self.kept.get(name, lambda: self._images(name))
        return self._all[name]

    @property
    def training(self) -> Examples:
        """The first training examples, from which means are made; the others need not stay in memory."""
        return self.kept.get("first of train", self._first)

    def _first(self) -> Examples:
        examples = self._images("train") if has_images(self.task) else self._all["train"]
        first = examples[slice(0, TRAINING)]
        return replace(first, stored=tuple(part.clone() for part in first.stored))

    @property
    def _all(self) -> Splits:
        return self.kept.get("all", lambda: self.task.splits(self.seed))

    def key_sets(self, examples: Examples) -> KeySets:
        """Sets of keys that mean something in the task."""
        return {} if self.spec is None else self.task.key_sets(examples, self.spec)

    def _images(self, name: Split) -> Examples:
        assert has_images(self.task)
        pixels, targets = self.task.pixels(name, self.seed)

        def made(pixels: Tensor, *fed: Tensor) -> tuple[Tensor, ...]:
            return self._scaled(pixels), *fed

        if self.task.start is None:
            return Examples((pixels,), targets[:, 0], made)
        return Examples((pixels, shifted(targets, self.task.start)), targets, made)

    def _scaled(self, pixels: Tensor) -> Tensor:
        assert self.scale is not None
        return scaled(pixels, self.scale)

    # one input

    def read(self, given: Input) -> Given:
        """An input of a question."""
        match given:
            case TextInput():
                return self._read_text(given.text)
            case ExampleInput():
                return self._example(given.split, given.index)
            case PixelsInput():
                return self._image(given.pixels, "the drawing")

    def _read_text(self, text: str) -> Given:
        if has_images(self.task):
            split, index = find_image(text, lambda split: len(self.split(split)))
            return self._example(split, index)
        example = self.task.parse(text)
        shown = self.task.show(example)
        if len(shown.labels) > MOST_TOKENS:
            count = len(shown.labels)
            raise InputError(f"the input has {count:,} tokens; at most {MOST_TOKENS} can be explored")
        told = ShownInput(shown.name, shown.labels, shown.truth, None)
        return Given(example.inputs, example.targets, told)

    def _example(self, split: Split, index: int) -> Given:
        examples = self.split(split)
        if not 0 <= index < len(examples):
            raise InputError(
                f"there is no {split} example {index}; they go from 0 to {len(examples) - 1:,}"
            )
        return self.given(self.single(split, index), f"{split}:{index}")

    def given(self, example: Examples, name: str) -> Given:
        """One example; it has this ``name`` if the task has no other for it."""
        if has_images(self.task):
            return self._image(_with_channels(example.stored[0][0]), name, example.targets)
        shown = self.task.show(example)
        name = shown.name if self.typed else name
        told = ShownInput(name, shown.labels, shown.truth, self._picture(example.inputs))
        return Given(example.inputs, example.targets, told)

    def single(self, split: Split, index: int) -> Examples:
        """One example of a split, without padding."""
        example = one_example(self.split(split), index, self.task.padding)
        if self.typed:
            return example
        return Examples(self.model.unpadded(example.inputs), example.targets)

    @cached_property
    def padded(self) -> bool:
        """Whether inputs differ in length."""
        return self.lengths("valid") is not None

    def lengths(self, split: Split) -> Int[Tensor, "N"] | None:
        """Tokens of each example of a split that are no padding; None where nothing is padded."""
        if self.task.images:
            return None
        inputs, padding = self.split(split).inputs, self.task.padding
        if padding is not None:
            return (inputs[0] != padding).sum(dim=1)
        own = None if self.typed else self.model.input_mask(*to_device_of(self.model, *inputs))
        return None if own is None else own.sum(dim=1).cpu()

    def _image(self, pixels: Values, name: str, targets: Tensor | None = None) -> Given:
        if not has_images(self.task):
            raise InputError(f"inputs of the task {brief(self.task.kind)} are no images")
        channels, height, width = self.task.image_shape
        if pixels.shape != (channels, height, width):
            raise InputError(
                f"the image has the shape {pixels.shape}; it must be {(channels, height, width)}: "
                "channels, height and width"
            )
        image = torch.from_numpy(pixels.array.copy())
        image = image[0] if channels == 1 else image
        truth = None if targets is None else self.task.answer(targets.flatten())
        return Given((self._scaled(image[None]),), targets, ShownInput(name, [], truth, pixels))

    def _picture(self, inputs: tuple[Tensor, ...]) -> Values | None:
        """What a wrapped model sees, from the darkest to the brightest."""
        if self.model.patch_size is None:
            return None
        image = inputs[self.model.source[0]][0].float()
        image = image[None] if image.dim() == 2 else image
        image = image if len(image) in (1, 3) else image.mean(dim=0, keepdim=True)
        low, high = image.min(), image.max()
        return Values.of(((image - low) / (high - low).clamp(min=1e-12) * 255).round().to(torch.uint8))

    def read_picture(self, picture: bytes) -> Values:
        """A picture file as the task has its images."""
        if not has_images(self.task) or not self.typed:
            raise InputError(f"{self.task.kind} has no pictures that could be read")
        return _with_channels(self.task.read_picture(picture, "the picture"))

    def image_form(self) -> ImageForm | None:
        """How large images are; None where inputs are none."""
        task = self.task
        if has_images(task):
            return ImageForm(*task.image_shape, task.rows, task.columns, task.ink)
        if self.model.patch_size is None:
            return None
        shown = self._example("valid", 0).shown.pixels
        if shown is None:
            return None
        channels, height, width = shown.shape
        return ImageForm(channels, height, width)

    @property
    def kind(self) -> Literal["text", "image", "examples"]:
        """How inputs are given; a task that reads no text has examples alone."""
        if not self.typed:
            return "examples"
        if self.task.images:
            return "image"
        return "examples" if type(self.task).parse is Task.parse else "text"

    def named(self, given: Any) -> Input:
        """An input as ``Run.predict`` takes it: a text, the number of an example, an image."""
        if not isinstance(given, str):
            if not has_images(self.task):
                raise InputError(f"an input of the task {brief(self.task.kind)} is a text")
            pixels = pixels_of(Picture("the image", given), self.task)
            return PixelsInput(_with_channels(pixels))
        match = None if self.task.images or self.readable(given) else NUMBERED.fullmatch(given.strip())
        return TextInput(given) if match is None else ExampleInput(match[1], int(match[2]))  # type: ignore[arg-type]

    def readable(self, text: str) -> bool:
        """Whether ``text`` is an input."""
        try:
            self.task.parse(text)
        except InputError:
            return False
        return True


def _with_channels(pixels: Tensor) -> Values:
    """An image (C, H, W), also of one without an axis for channels."""
    return Values.of(pixels[None] if pixels.dim() == 2 else pixels)


def output_labels(task: Task, logits: int) -> list[str]:
    """Names of what can be said: of images the classes alone, otherwise a sign for each logit."""
    if task.start is None or task.images:
        return task.labels()[:logits]
    return task.symbols(torch.arange(logits))
