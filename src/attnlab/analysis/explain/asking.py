"""From an input of a run to the questions about it, a question for each thing that the model says.

A sequence has a question for each of its tokens but the end, a class has one. The answer that is explained
is the one that the model gives, right or wrong. Of an image only classes are said, never the start token,
so that probabilities are those of the classes.
"""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.answers import answer, fed_inputs
from attnlab.analysis.explain.questions import Patches, Question, Space, Tokens
from attnlab.analysis.patterns import patch_names
from attnlab.analysis.samples import Sample
from attnlab.errors import InputError, LabError, nearest
from attnlab.examples import Examples, Shown
from attnlab.images import ImageTask, Scale, scaled
from attnlab.model import Model
from attnlab.models.images import patch_grid
from attnlab.spec import Task

LONGEST = 128
"""Numbers of a list that can be explained; each is taken away several times."""
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
    image: Float[Tensor, "Y X *C"] | None = None
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
    """Why the model answers so to one example of tokens, without padding."""
    shown = task.show(example)
    if len(shown.labels) > LONGEST:
        raise InputError(f"the input has {len(shown.labels):,} tokens; at most {LONGEST} can be explained")
    said = answer(task, model, example)
    return _asked(task, model, example, said, shown, input_space(model, example.inputs[0]))


@torch.no_grad()
def ask_image(task: ImageTask, model: Model, sample: Sample, *, scale: Scale) -> Asked:
    """Why the model, which has learned with ``scale``, says so of an image."""
    image, said = scaled(sample.pixels[None], scale), torch.tensor([sample.answer])
    truth = None if sample.truth is None else torch.tensor(sample.truth)
    space = input_space(model, image, empty=-scale[0] / scale[1])
    tokens = space.parts(model, image).shape[1]
    shown = Shown(
        sample.name, patch_names(image.shape[-2:], tokens), None if truth is None else task.answer(truth)
    )
    example = Examples((image,), said if truth is None else truth[None])
    found = _asked(task, model, example, said, shown, space, classes=len(task.classes))
    pixels = sample.pixels.float() / 255
    return replace(found, image=pixels if pixels.ndim == 2 else pixels.movedim(0, -1))


def _asked(
    task: Task,
    model: Model,
    example: Examples,
    said: Int[Tensor, "1 T"],
    shown: Shown,
    space: Space,
    *,
    classes: int | None = None,
) -> Asked:
    """A question for each token of the answer but its end, or one about the class."""
    inputs, sequence = fed_inputs(task, example, said), task.start is not None
    questions, truths = {}, {}
    rows = zip(task.places(), said[0], example.targets.flatten(), strict=True)
    for place, (name, one, true) in enumerate(rows):
        if name != END:
            about = Question(model, inputs, space, int(one), place if sequence else None, classes)
            questions[name] = (about, _sign(task, one))
            if shown.truth is not None:
                truths[name] = _sign(task, true)
    output = task.answer(said[0])
    return Asked(shown.name, output, shown.labels, questions, truth=shown.truth, truths=truths)


def _sign(task: Task, token: Int[Tensor, ""]) -> str:
    """How one token of an answer, or the class, is written."""
    return task.answer(token) if task.start is None else task.symbols(token[None])[0]


@torch.no_grad()
def input_space(model: Model, source: Tensor, *, empty: float | None = None) -> Space:
    """What inputs like ``source`` are taken apart into: patches of an image, of which an ``empty`` pixel is
    given, or tokens. Tokens that the model puts before them are no parts.
    """
    path = model.input_path
    if path is None:
        name = type(model).__name__
        raise LabError(
            f"the model {name} has no vector for each part of its input, so none can be explained"
        )
    tokens = model.get_submodule(path)(source[:1]).shape[1]
    if empty is None:
        return Tokens(path, tokens - source.shape[1])
    rows, _ = patch_grid(source.shape[-2:], tokens)
    return Patches(source.shape[-2] // rows, empty)
