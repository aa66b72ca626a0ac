"""What can be given to a subject, asked of its task: texts, images, examples of a split by stratum.

A wrapped model comes with examples and no task; ``PlainTask`` is what stands in for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlab.analysis.ablate.ablation import TRAINING
from attnlab.analysis.samples import find_image
from attnlab.analysis.subjects import score
from attnlab.devices import to_device_of
from attnlab.errors import InputError, nearest
from attnlab.explorer.scene import (
    Asked,
    ExampleInput,
    ImageForm,
    Input,
    Item,
    Page,
    PixelsInput,
    ShownInput,
    Stratum,
    TaskForm,
    TextInput,
    Values,
)
from attnlab.images import Scale, has_images, scaled
from attnlab.model import Model
from attnlab.sets import Examples, Shown, Splits, one_example, shifted
from attnlab.specs import ModelSpec, Split, Task
from attnlab.specs.task import KeySets

MOST_TOKENS = 256
"""Tokens of an input that is explored, at most: patterns are shown whole."""
ANSWERED = 2000
"""Examples of a split that are answered to find the wrong ones."""
FEW_CLASSES = 26
"""Classes of which the wrong examples are a stratum each, at most."""
SUGGESTED = 3
ALL, WRONG = "all", "wrong"


@final
@dataclass(frozen=True, kw_only=True)
class PlainTask(Task):
    """Examples without a task: answers are numbers, and so are tokens of the input."""

    kind: ClassVar[str] = "examples"
    data: Examples
    classes: int
    names: tuple[str, ...] = ()
    """Of the classes, if they have any."""

    @property
    def vocabulary(self) -> int:
        return self.classes

    @property
    def target_length(self) -> int:
        return self.data.targets[0].numel()

    def splits(self, seed: int) -> Splits:
        """All of them, whatever the split."""
        return Splits(self.data, self.data, self.data)

    def answer(self, tokens: Tensor) -> str:
        return " ".join(self.symbols(tokens.reshape(-1)))

    def symbols(self, tokens: Tensor) -> list[str]:
        return [self.names[each] if self.names else str(each) for each in tokens.tolist()]

    def labels(self) -> list[str]:
        return self.symbols(torch.arange(self.classes))

    def places(self) -> list[str]:
        if self.data.targets.dim() == 1:
            return ["class"]
        return [str(place + 1) for place in range(self.target_length)]

    def strata(self, examples: Examples) -> dict[str, Tensor]:
        """By class; sequences have none."""
        return {} if examples.targets.dim() > 1 else super().strata(examples)

    def show(self, example: Examples) -> Shown:
        """Whole numbers as they are, vectors by their place."""
        first = example.inputs[0][0]
        if first.dim() == 1 and not first.is_floating_point():
            labels = [str(each) for each in first.tolist()]
        else:
            labels = [str(place + 1) for place in range(len(first) if first.dim() else 1)]
        return Shown(" ".join(labels), labels, self.answer(example.targets.flatten()))


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

    def split(self, name: Split) -> Examples:
        """The examples of a split; images are scaled when they are asked for."""
        if name not in self._splits:
            self._splits[name] = self._images(name) if has_images(self.task) else self._all[name]
        return self._splits[name]

    @cached_property
    def training(self) -> Examples:
        """The first training examples, from which means are made; the others need not stay in memory."""
        first = self.split("train")[slice(0, TRAINING)]
        self._splits.pop("train", None)
        return replace(first, kept=tuple(part.clone() for part in first.kept))

    @cached_property
    def _splits(self) -> dict[Split, Examples]:
        return {}

    @cached_property
    def _all(self) -> Splits:
        return self.task.splits(self.seed)

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
        example = self.single(split, index)
        if has_images(self.task):
            return self._image(_with_channels(example.kept[0][0]), f"{split}:{index}", example.targets)
        shown = self.task.show(example)
        name = shown.name if self.typed else f"{split}:{index}"
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
            raise InputError(f"inputs of the task {self.task.kind!r} are no images")
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

    # many

    @cached_property
    def _strata(self) -> dict[Split, dict[str, Bool[Tensor, "N"]]]:
        return {}

    @cached_property
    def _answered(self) -> dict[Split, dict[str, Bool[Tensor, "N"]]]:
        """Strata that need answers, of the splits where somebody has asked for them."""
        return {}

    def strata(self, split: Split) -> dict[str, Bool[Tensor, "N"]]:
        """Groups of a split: all, and those of the task."""
        if split not in self._strata:
            examples = self.split(split)
            every = {ALL: torch.ones(len(examples), dtype=torch.bool)}
            self._strata[split] = {**every, **self.task.strata(examples)}
        return self._strata[split]

    def counted(self, split: Split) -> list[Stratum]:
        """Groups by name; wrong ones are counted once they have been asked for."""
        found = [Stratum(name, int(group.sum())) for name, group in self.strata(split).items()]
        answered = self._answered.get(split, {})
        return found + [
            Stratum(name, int(answered[name].sum()) if name in answered else None)
            for name in self._wrong_names()
        ]

    def _wrong_names(self) -> list[str]:
        labels = self.task.labels() if self.task.start is None else []
        classes = labels if self.task.target_length == 1 and len(labels) <= FEW_CLASSES else []
        return [WRONG, *(f"{WRONG}: {each}" for each in classes)]

    def _wrong(self, split: Split, copied: Callable[[], Model]) -> dict[str, Bool[Tensor, "N"]]:
        """The wrong ones among the first examples of a split, and those of each class."""
        if split not in self._answered:
            examples = self.split(split)
            first = examples[slice(0, ANSWERED)]
            wrong = torch.zeros(len(examples), dtype=torch.bool)
            wrong[: len(first)] = ~score(copied(), first).exact
            groups = {WRONG: wrong}
            for number, name in enumerate(self._wrong_names()[1:]):
                groups[name] = wrong & (examples.targets.flatten() == number)
            self._answered[split] = groups
        return self._answered[split]

    def examples(
        self, split: Asked, stratum: str, start: int, count: int, copied: Callable[[], Model]
    ) -> Page:
        """Some of the examples of a stratum; ``copied`` makes a model that may answer for long."""
        known = self.strata(split)
        if stratum in self._wrong_names() and stratum not in known:
            known = self._wrong(split, copied)
        if stratum not in known:
            names = [*self.strata(split), *self._wrong_names()]
            raise InputError(f"there is no stratum {stratum!r}{nearest(stratum, names)}")
        numbers: Int[Tensor, M] = known[stratum].nonzero()[:, 0]
        return Page(len(numbers), [self._item(split, n) for n in numbers[start : start + count].tolist()])

    def _item(self, split: Split, index: int) -> Item:
        shown = self._example(split, index).shown
        return Item(index, shown.name, shown.truth, shown.pixels)

    # its form

    def form(self, labels: list[str]) -> TaskForm:
        """What the page must know to ask for inputs and to show answers, whose logits are ``labels``."""
        task, suggestions = self.task, self._suggestions()
        kind = "examples" if not self.typed else "image" if task.images else "text"
        return TaskForm(
            kind=task.kind,
            noun=task.noun,
            input=kind,  # type: ignore[arg-type]  # one of the three
            placeholder=suggestions[0] if suggestions else "",
            suggestions=suggestions,
            image=self.image_form(),
            labels=labels,
            places=task.places(),
            answer="class" if task.start is None and task.target_length == 1 else "sequence",
            note=task.note(),
            splits={"valid": self.counted("valid"), "test": self.counted("test")},
            tour=list(task.tour()),
        )

    def _suggestions(self) -> list[str]:
        """What the task suggests, or its first examples."""
        if not self.typed or self.task.images:
            return []
        return self.task.suggestions() or [self._item("valid", n).name for n in range(SUGGESTED)]

    def image_form(self) -> ImageForm | None:
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


def _with_channels(pixels: Tensor) -> Values:
    """An image (C, H, W), also of one without an axis for channels."""
    return Values.of(pixels[None] if pixels.dim() == 2 else pixels)


def output_labels(task: Task, logits: int) -> list[str]:
    """Names of what can be said: of images the classes alone, otherwise a sign for each logit."""
    if task.start is None or task.images:
        return task.labels()[:logits]
    return task.symbols(torch.arange(logits))
