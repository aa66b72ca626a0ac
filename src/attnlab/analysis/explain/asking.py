"""From an input of a run to the questions about it, a question for each thing that the model says.

An addition has a question for each digit of the sum, a grid one for each of its digits; a digit and a list
have one. The answer that is explained is the one that the model gives, right or wrong. Of a grid only
digits are said, never the start token, so that probabilities are those of ten digits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.answers import answer, fed_inputs
from attnlab.analysis.explain.questions import Patches, Question, Tokens
from attnlab.analysis.patterns import patch_names
from attnlab.analysis.samples import Sample
from attnlab.errors import InputError, nearest
from attnlab.examples import Examples
from attnlab.images import Scale, scaled
from attnlab.model import Model
from attnlab.models import Classifier, Seq2Seq
from attnlab.problems.grids import Grids
from attnlab.spec import Task

LONGEST = 128
"""Numbers of a list that can be explained; each is taken away several times."""
CLASS = "class"
END = "end"
"""The place that ends an answer; nothing brings it about."""

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

    @property
    def correct(self) -> bool | None:
        """Whether the model is right; None if nobody knows."""
        return None if self.truth is None else self.truth == self.output


@torch.no_grad()
def ask_tokens(task: Task, model: Model, example: Examples) -> Asked:
    """A question for each token of the answer but its end, or one about the class."""
    shown = task.show(example)
    if len(shown.labels) > LONGEST:
        raise InputError(f"the input has {len(shown.labels):,} tokens; at most {LONGEST} can be explained")
    said = answer(task, model, example)
    inputs = fed_inputs(task, example, said)
    space, sequence = token_space(model), task.start is not None
    questions, truths = {}, {}
    for place, (name, one, true) in enumerate(zip(task.places(), said[0], _rows(example), strict=True)):
        if name != END:
            sign, right = (_sign(task, each) for each in (one, true))
            about = Question(model, inputs, space, int(one), place if sequence else None)
            questions[name] = (about, sign)
            if shown.truth is not None:
                truths[name] = right
    output = task.answer(said[0])
    return Asked(shown.name, output, shown.labels, questions, truth=shown.truth, truths=truths)


def _rows(example: Examples) -> Int[Tensor, "T"]:
    return example.targets.flatten()


def _sign(task: Task, token: Int[Tensor, ""]) -> str:
    """How one token of an answer, or the class, is written."""
    return task.answer(token) if task.start is None else task.symbols(token[None])[0]


def token_space(model: Model) -> Tokens:
    """The tokens of an input are its parts; tokens that the model puts before them are not."""
    if isinstance(model, Classifier):
        return list_space(model)
    return Tokens("source_embed")


def list_space(model: Classifier) -> Tokens:
    """The numbers of a list are its parts; tokens that the model puts before them are not."""
    numbers = torch.zeros(1, 2, dtype=torch.long)
    with torch.no_grad():
        return Tokens("embed", model.embed(numbers).shape[1] - numbers.shape[1])


def ask_digit(model: Model, sample: Sample, *, patch: int, scale: Scale) -> Asked:
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
        cell: (Question(model, inputs, space, answer, place, classes=len(task.classes)), str(answer))
        for place, (cell, answer) in enumerate(zip(task.places(), sample.answer, strict=True))
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
