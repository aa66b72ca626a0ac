"""Questions about one input of any model, and all methods put to them.

A model that gives a class has one question, one that gives a sequence has a question for each of its
tokens. The answer that is explained is the one that the model gives, right or wrong.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.explain.curves import ONE, Effort, explain_place, judge_question
from attnlab.analysis.explain.methods import METHODS, shuffled_ranks, shuffled_weights
from attnlab.analysis.explain.perturbation import Background, Patches, Question, Space, Tokens, Vectors
from attnlab.analysis.explain.results import Explanation, Judgement, Place
from attnlab.analysis.explain.verdict import explain_many
from attnlab.analysis.subjects import require_attention
from attnlab.devices import to_device_of
from attnlab.errors import InputError, LabError, brief, nearest
from attnlab.model import Model
from attnlab.models.images import patch_grid
from attnlab.progress import Progress, silent

Backgrounds = Callable[[Model], Background]
"""What parts are replaced by, for a model with any weights."""


@dataclass(frozen=True)
class Asked:
    """An input with what the model says to it; ``questions`` by the place of the answer they are about.

    ``signs`` names the parts. ``image`` holds pixels from 0 to 1. ``truth`` is the right output, if it is
    known.
    """

    name: str
    output: str
    signs: list[str]
    questions: dict[str, Question]
    truth: str | None
    image: Float[Tensor, "Y X *C"] | None = None

    def at(self, place: str) -> dict[str, Question]:
        if not place:
            return self.questions
        if place not in self.questions:
            raise InputError(f"{self.name} has no place {brief(place)}{nearest(place, self.questions)}")
        return {place: self.questions[place]}

    @property
    def correct(self) -> bool | None:
        return None if self.truth is None else self.truth == self.output


@torch.no_grad()
def input_space(model: Model, inputs: tuple[Tensor, ...], *, empty: float | None = None) -> Space:
    """What ``inputs`` are taken apart into: patches of an image, of which an ``empty`` pixel is given, or
    tokens. Tokens that the model puts before them are no parts.
    """
    number, path = model.source[0], model.input_path
    source = inputs[number]
    if empty is not None and model.patch_size is not None:
        return Patches(model.patch_size, empty, number)
    if path is None and empty is None and source.is_floating_point():
        return Vectors(model.source)
    if path is None:
        name = type(model).__name__
        raise LabError(
            f"the model {name} has no vector for each part of its input, so none can be explained"
        )
    tokens = model.get_submodule(path)(*to_device_of(model, source[:1])).shape[1]
    if empty is None:
        return Tokens(path, tokens - source.shape[1], at=number, axis=model.input_axis)
    rows, _ = patch_grid(source.shape[-2:], tokens)
    return Patches(source.shape[-2] // rows, empty, number)


def require_sight(model: Model) -> None:
    """Refuse a model that looks at no part of its input, or at parts that cannot be told apart."""
    require_attention(model)
    if not model.decodes:
        return
    kinds = {(site.queries, site.kind) for site in model.sites()}
    if ("answer", "cross") not in kinds:
        raise LabError(
            "the decoder has no cross attention left, so its answers are the same for every input and "
            "attributed to no part of it"
        )
    if model.joined_keys() is not None and ("input", "self") not in kinds:
        raise LabError("the encoder has no attention left, so what its bridge joins is not known")


def explain_asked(
    asked: Asked,
    model: Model,
    backgrounds: Backgrounds,
    place: str = "",
    *,
    name: str,
    effort: Effort = ONE,
    seed: int = 0,
    progress: Progress = silent,
) -> Explanation:
    """Every method, for one place of the answer or for all of them; ``name`` is that of the model.

    All places are put to the same shuffled weights as well.
    """
    chosen, places = asked.at(place), list[Place]()
    background, other = backgrounds(model), shuffled_weights(model, seed=seed)
    blank = backgrounds(other)
    for each, question in chosen.items():
        judged = judge_question(question, background, effort=effort, seed=seed)
        shuffled = shuffled_ranks(judged.scored, question.of(other), blank, seed=seed)
        places.append(explain_place(each, question, judged, shuffled))
        progress(len(places), len(chosen))
    return Explanation(
        run=name,
        input=asked.name,
        output=asked.output,
        truth=asked.truth,
        correct=asked.correct,
        parts=asked.signs,
        image=None if asked.image is None else asked.image.tolist(),
        methods=list(METHODS),
        replacements=places[0].replacements,
        places=places,
    )


def judge_drawn(
    ask: Callable[[int], Asked],
    numbers: Int[Tensor, "N"],
    count: int,
    model: Model,
    backgrounds: Backgrounds,
    place: str = "",
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> Judgement:
    """Every method on ``count`` of the inputs with these ``numbers``, drawn at random.

    Without a ``place`` each input is asked about one of its places, drawn at random too.
    """
    order = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(seed))
    chosen = numbers[order[:count]].tolist()
    chance = random.Random(seed)

    def questions() -> Iterator[Question]:
        for number in chosen:
            asked = ask(number).at(place)
            yield asked[place or chance.choice(list(asked))]

    found = explain_many(questions(), model, backgrounds, count=count, seed=seed, progress=progress)
    return replace(found, place=place or None)
