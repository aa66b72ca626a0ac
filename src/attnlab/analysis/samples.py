"""Images with what a model says about them: named ones, pictures, some of a split, or mistakes."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from attnlab.analysis.given_images import Picture, pixels_of, separate
from attnlab.analysis.image_classifier import ImageClassifier
from attnlab.analysis.predict import Prediction
from attnlab.data.pictures import pictures_in
from attnlab.errors import InputError, brief
from attnlab.images import ImageTask
from attnlab.progress import Progress, Stages, silent
from attnlab.results import Result, Row
from attnlab.specs import Split
from attnlab.specs.codec import later, unwritten

NOT_SURE, DOUBT = "not sure", "?"
"""In the place of an answer, and of one class of several."""
_NUMBERED = re.compile(r"(?:(train|valid|test):)?([0-9]{1,9})")

Named = tuple[str, UInt8[Tensor, "*C Y X"], list[int] | None]
"""A name, an image as the task has it, and the classes it shows if that is known."""


@dataclass(frozen=True, kw_only=True)
class ImagePrediction(Prediction):
    """What is said about an image; ``probabilities`` has a row for each cell of it. ``sure`` says whether
    each of its classes is as probable as was asked for; ``output`` is the likeliest answer in any case.
    """

    shown_by: ClassVar[str] = "attnlab.tables.predict"

    truth: str | None = later(None)
    probabilities: list[list[float]]
    sure: bool = True
    sample: "Sample | None" = unwritten(None)
    """The image itself."""

    @property
    def text(self) -> str:
        """The answer, or "not sure"."""
        return self.output if self.sample is None else self.sample.text


@dataclass(frozen=True)
class Sample:
    """One image; ``truth`` is None where nobody knows it."""

    task: ImageTask
    name: str
    pixels: UInt8[Tensor, "*C Y X"]
    answer: list[int]
    probabilities: Float[Tensor, "D V"]
    truth: list[int] | None = None
    least: float = 0.0
    """The least probability of a class that is said."""

    @property
    def right(self) -> bool | None:
        return None if self.truth is None else self.truth == self.answer

    @property
    def output(self) -> str:
        return self.named(self.answer)

    @property
    def shown(self) -> str | None:
        return None if self.truth is None else self.named(self.truth)

    @property
    def doubtful(self) -> list[int]:
        """The cells whose class is less probable than it has to be."""
        return (self.probabilities.max(dim=-1).values < self.least).nonzero()[:, 0].tolist()

    @property
    def text(self) -> str:
        """The answer; of several cells those that are doubtful are a question mark."""
        doubtful = set(self.doubtful)
        if len(doubtful) == len(self.answer):
            return NOT_SURE
        named = [self.task.classes[number] for number in self.answer]
        return self.task.joined([DOUBT if at in doubtful else name for at, name in enumerate(named)])

    def named(self, numbers: list[int]) -> str:
        return self.task.joined([self.task.classes[number] for number in numbers])

    @property
    def probability(self) -> float:
        """Of the whole answer: the product over its cells."""
        return self.probabilities.max(dim=-1).values.prod().item()

    def result(self) -> ImagePrediction:
        return ImagePrediction(
            input=self.name,
            output=self.output,
            probability=self.probability,
            correct=self.right,
            truth=self.shown,
            probabilities=self.probabilities.tolist(),
            sure=not self.doubtful,
            sample=self,
        )


@dataclass(frozen=True, kw_only=True)
class ShownImages(Result):
    """Some images of a split with what is said about them; ``wrong`` counts all that are misclassified."""

    shown_by: ClassVar[str] = "attnlab.tables.show"

    run: str
    split: Split
    images: int
    wrong: int | None
    samples: list[ImagePrediction]

    def records(self) -> list[Row]:
        """A row for each image."""
        return [row for each in self.samples for row in each.records()]


def show_images(
    reader: ImageClassifier, *, split: Split, count: int, wrong: bool, seed: int, stages: Stages
) -> ShownImages:
    """What ``draw_samples`` draws, as a result."""
    progress = stages("evaluating") if wrong else silent
    drawn = draw_samples(reader, split=split, count=count, wrong=wrong, seed=seed, progress=progress)
    told = [sample.result() for sample in drawn.samples]
    return ShownImages(run=reader.name, split=split, images=drawn.images, wrong=drawn.wrong, samples=told)


@dataclass(frozen=True)
class Drawn:
    """Samples, the images they were drawn from, and how many of those are wrong if that was looked at."""

    samples: list[Sample]
    images: int
    wrong: int | None


def draw_samples(
    reader: ImageClassifier,
    *,
    split: Split = "test",
    count: int = 10,
    wrong: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> Drawn:
    """``count`` images of a split in a random order; with ``wrong`` only such as are misclassified."""
    if count < 1:
        raise InputError(f"samples is {count}; it must be at least 1")
    images = reader.images(split)
    order = torch.randperm(len(images.truth), generator=torch.Generator().manual_seed(seed))
    if not wrong:
        return Drawn(samples_at(reader, split, order[:count], progress), len(order), None)
    said = reader.predict_proba(images.pixels, progress=progress)
    missed = (said.argmax(dim=-1) != images.truth).any(dim=1)
    chosen = order[missed[order]][:count]
    drawn = _samples(reader, _named(reader, split, chosen), said[chosen])
    return Drawn(drawn, len(order), int(missed.sum()))


def first_samples(reader: ImageClassifier, *, split: Split, count: int) -> list[Sample]:
    return samples_at(reader, split, torch.arange(min(count, len(reader.images(split).truth))))


def samples_at(
    reader: ImageClassifier, split: Split, chosen: Int[Tensor, "M"], progress: Progress = silent
) -> list[Sample]:
    """The images of a split with these numbers."""
    return _samples(reader, _named(reader, split, chosen), progress=progress)


def _named(reader: ImageClassifier, split: Split, chosen: Int[Tensor, "M"]) -> list[Named]:
    images, names = reader.images(split), (f"{split}:{place}" for place in chosen.tolist())
    return list(zip(names, images.pixels[chosen], images.truth[chosen].tolist(), strict=True))


def _samples(
    reader: ImageClassifier,
    named: list[Named],
    said: Float[Tensor, "N D V"] | None = None,
    *,
    progress: Progress = silent,
) -> list[Sample]:
    """Images with what was ``said``, or is said now: the likeliest class at each place."""
    if said is None:
        said = reader.predict_proba(torch.stack([pixels for _, pixels, _ in named]), progress=progress)
    rows = zip(named, said.argmax(dim=-1).tolist(), said, strict=True)
    return [
        Sample(reader.task, name, pixels, answer, chances, truth)
        for (name, pixels, truth), answer, chances in rows
    ]


@dataclass(frozen=True)
class Refused:
    name: str
    error: InputError

    def to_json(self) -> dict[str, str]:
        """Beside predictions, which have an output instead."""
        return {"input": self.name, "error": str(self.error)}


Given = str | Path | Picture | Refused
FEW = 12
"""Pictures that are read in no time."""


def predict_images(
    reader: ImageClassifier, inputs: Any, stages: Stages, *, sure: float = 0.0
) -> list[ImagePrediction | Refused]:
    """The answer to each input, in the order of the inputs; what cannot be read is refused in its place.
    Classes that are less probable than ``sure`` are doubtful.

    An input is the name of a picture, of a folder of pictures, an image of the task such as ``test:7``, or
    an image in memory; an array may hold several.
    """
    several = separate(inputs, reader.task)
    given = expand(inputs if several is None else several)
    progress = stages("reading") if len(given) > FEW else silent
    answers = read_each(reader, given, progress=progress)
    return [each if isinstance(each, Refused) else replace(each, least=sure).result() for each in answers]


def expand(inputs: Sequence[Any]) -> list[Given]:
    """The inputs, with the pictures of folders in the place of folders; files are paths."""
    found: list[Given] = []
    for number, given in enumerate(inputs):
        if isinstance(given, Picture):
            found.append(given)
        elif not isinstance(given, str | Path):
            found.append(Picture(f"image {number}", given))
        else:
            try:
                found += _expanded(str(given))
            except InputError as error:
                found.append(Refused(str(given).strip(), error))
    return found


def _expanded(given: str) -> Sequence[Given]:
    if os.path.isdir(given):  # noqa: PTH112  # unlike Path.is_dir, false for a name that no file can have
        return pictures_in(Path(given))
    if os.path.exists(given):  # noqa: PTH110
        return [Path(given)]
    if _NUMBERED.fullmatch(given.strip()):
        return [given]
    raise InputError(
        f"no file {brief(given.strip())}; give a picture, a folder of pictures, or test:7 for the "
        "test image number 7"
    )


def read_inputs(
    reader: ImageClassifier, inputs: Sequence[Given], *, progress: Progress = silent
) -> list[Sample]:
    """Read files, pictures in memory, and images of the task such as ``test:7``."""
    samples: list[Sample] = []
    for found in read_each(reader, inputs, progress=progress):
        if isinstance(found, Refused):
            raise found.error
        samples.append(found)
    return samples


def read_each(
    reader: ImageClassifier, inputs: Sequence[Given], *, progress: Progress = silent
) -> list[Sample | Refused]:
    """The same, but what cannot be read is told in its place."""
    opened: list[Named | Refused] = []
    for given in inputs:
        opened.append(_opened(reader, given))
        progress(len(opened), len(inputs))
    named = [each for each in opened if not isinstance(each, Refused)]
    samples = iter(_samples(reader, named) if named else [])
    return [each if isinstance(each, Refused) else next(samples) for each in opened]


def _opened(reader: ImageClassifier, given: Given) -> Named | Refused:
    if isinstance(given, Refused):
        return given
    name = given.name if isinstance(given, Picture) else str(given).strip()
    try:
        if isinstance(given, Path):
            return name, reader.task.read_picture(given, name), None
        if isinstance(given, Picture):
            return name, pixels_of(given, reader.task), None
        split, number = find_image(given, lambda split: len(reader.images(split).truth))
    except InputError as error:
        return Refused(name, error)
    images = reader.images(split)
    return f"{split}:{number}", images.pixels[number], images.truth[number].tolist()


def find_image(text: str, count: Callable[[Split], int]) -> tuple[Split, int]:
    """The split and the number that ``test:7`` names; ``count`` says how many images a split has."""
    match = _NUMBERED.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{brief(text.strip())} names no image; write test:7 for the test image number 7")
    split: Split = match[1] or "test"  # type: ignore[assignment]  # the pattern knows no other names
    if int(match[2]) >= count(split):
        raise InputError(
            f"{brief(text.strip())} does not exist; {split} images go from 0 to {count(split) - 1}"
        )
    return split, int(match[2])
