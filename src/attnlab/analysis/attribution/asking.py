"""From an input of a run to the questions about it, a question for each thing that the model says.

An addition has a question for each digit of the sum, a grid one for each of its digits; a digit and a list
have one. The answer that is explained is the one that the model gives, right or wrong. Of a grid only
digits are said, never the start token, so that probabilities are those of ten digits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlab.analysis.attribution.questions import Patches, Question, Tokens
from attnlab.analysis.decoding import decode, fed
from attnlab.analysis.patterns import patch_names
from attnlab.analysis.samples import Sample
from attnlab.errors import InputError, nearest
from attnlab.models import Classifier, Seq2Seq
from attnlab.tasks import Addition, Grids, Sorting
from attnlab.tasks.digits import CLASSES as DIGITS
from attnlab.tasks.digits import Scale, scaled
from attnlab.tasks.lists import is_sorted
from attnlab.tasks.sorting import CLASSES

LONGEST = 128
"""Numbers of a list that can be explained; each is taken away several times."""
CLASS = "class"

Parts = dict[str, tuple[Question, str]]


def wrong_words(answer: str, truth: str | None) -> str:
    """What follows an answer that is known to be wrong; nothing if it is right or nobody knows."""
    return "" if truth in (None, answer) else f", wrong, it is {truth}"


@dataclass(frozen=True)
class Asked:
    """An input with what the model says to it; ``questions`` by place, each with the sign of its answer.

    ``signs`` names the parts. ``image`` holds pixels from 0 to 1. ``truth`` is the right output, and
    ``truths`` are the right signs by place, where they are known.
    """

    name: str
    output: str
    signs: list[str]
    questions: Parts
    image: Float[Tensor, "Y X"] | None = None
    truth: str | None = None
    truths: dict[str, str] = field(default_factory=dict)

    def at(self, place: str) -> Parts:
        """The question about one place, or all of them."""
        if not place:
            return self.questions
        if place not in self.questions:
            raise InputError(f"{self.name} has no place {place!r}{nearest(place, self.questions)}")
        return {place: self.questions[place]}

    def to_json(self) -> dict[str, Any]:
        return {
            "input": self.name,
            "output": self.output,
            "truth": self.truth,
            "correct": None if self.truth is None else self.truth == self.output,
            "parts": self.signs,
            "image": None if self.image is None else self.image.tolist(),
        }


@torch.no_grad()
def ask_sum(task: Addition, model: Seq2Seq, pair: Int[Tensor, "2"]) -> Asked:
    """A question for each digit of a sum; the end is no digit."""
    emitted = decode(task, model, pair[None])
    inputs = (task.source(pair[None]), fed(task, emitted))
    questions = {
        name: (Question(model, inputs, Tokens("source_embed"), int(emitted[0, place]), place), sign)
        for place, (name, sign) in enumerate(
            zip(task.column_names(), task.symbols(emitted[0]), strict=True)
        )
        if name != "end"
    }
    a, b = pair.tolist()
    (target,) = task.target(pair[None])
    return Asked(
        f"{a}+{b}",
        task.answer(emitted[0]),
        task.symbols(inputs[0][0]),
        questions,
        truth=task.answer(target),
        truths=dict(zip(questions, task.symbols(target), strict=False)),  # the end is no question
    )


@torch.no_grad()
def ask_list(task: Sorting, model: Classifier, numbers: Int[Tensor, "L"]) -> Asked:
    """Whether the list is sorted."""
    if len(numbers) > LONGEST:
        raise InputError(f"the list has {len(numbers):,} numbers; at most {LONGEST} can be explained")
    inputs = (numbers[None],)
    answer = int(model(*inputs).argmax())
    question = Question(model, inputs, list_space(model), answer)
    signs, truth = task.symbols(numbers), CLASSES[int(is_sorted(numbers[None]))]
    asked = {CLASS: (question, CLASSES[answer])}
    return Asked(" ".join(signs), CLASSES[answer], signs, asked, truth=truth, truths={CLASS: truth})


def list_space(model: Classifier) -> Tokens:
    """The numbers of a list are its parts; tokens that the model puts before them are not."""
    numbers = torch.zeros(1, 2, dtype=torch.long)
    with torch.no_grad():
        return Tokens("embed", model.embed(numbers).shape[1] - numbers.shape[1])


def ask_digit(model: nn.Module, sample: Sample, *, patch: int, scale: Scale) -> Asked:
    """Which digit it is."""
    image, (answer,) = scaled(sample.pixels[None], scale), sample.answer
    question = Question(model, (image,), Patches(patch, empty_pixel(scale)), answer)
    asked = {CLASS: (question, str(answer))}
    return _seen(sample, asked, image[0], patch=patch, scale=scale)


def ask_grid(task: Grids, model: Seq2Seq, sample: Sample, *, patch: int, scale: Scale) -> Asked:
    """A question for each digit that is said."""
    image = scaled(sample.pixels[None], scale)
    inputs = (image, torch.tensor([[task.start, *sample.answer[:-1]]]))
    space = Patches(patch, empty_pixel(scale))
    questions = {
        cell: (Question(model, inputs, space, answer, place, classes=DIGITS), str(answer))
        for place, (cell, answer) in enumerate(zip(task.cell_names(), sample.answer, strict=True))
    }
    return _seen(sample, questions, image[0], patch=patch, scale=scale)


def _seen(
    sample: Sample, questions: Parts, image: Float[Tensor, "Y X"], *, patch: int, scale: Scale
) -> Asked:
    """The questions about an image, with what it shows if that is known."""
    truth = None if sample.truth is None else "".join(map(str, sample.truth))
    return Asked(
        sample.name,
        "".join(map(str, sample.answer)),
        _patches(image.shape, patch),
        questions,
        _ink(image, scale),
        truth,
        dict(zip(questions, truth or "", strict=False)),  # a sign a digit, or none at all
    )


def empty_pixel(scale: Scale) -> float:
    """What a model is given where there is no ink."""
    mean, deviation = scale
    return -mean / deviation


def _patches(image: Sequence[int], patch: int) -> list[str]:
    return patch_names(image, (image[0] // patch) * (image[1] // patch))


def _ink(image: Float[Tensor, "Y X"], scale: Scale) -> Float[Tensor, "Y X"]:
    mean, deviation = scale
    return (image * deviation + mean).clamp(0, 1)
