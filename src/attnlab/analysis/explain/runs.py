"""Runs of every task, ready to be asked why."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.asking import ask, expand
from attnlab.analysis.explain.asking import (
    LONGEST,
    Asked,
    Parts,
    ask_image,
    ask_tokens,
    input_space,
)
from attnlab.analysis.explain.judging import ONE, Effort, explain_place, judge_question
from attnlab.analysis.explain.many import explain_many
from attnlab.analysis.explain.methods import METHODS
from attnlab.analysis.explain.questions import Question, Space
from attnlab.analysis.explain.replacing import Background, make_background
from attnlab.analysis.explain.results import Explanation, Judgement, Place
from attnlab.analysis.explain.shuffling import shuffled_ranks, shuffled_weights
from attnlab.analysis.image_classifier import HEADLESS, image_classifier, use_instead
from attnlab.analysis.samples import read_samples
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError, LabError
from attnlab.examples import Examples, one_example
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.runs import Run, load_model, save_if_larger
from attnlab.spec import Split

TRAINING = 200
"""Training examples from which replacements are made."""


@dataclass(frozen=True)
class Explained:
    """A run's model; ``read`` makes questions of an input as users write it, ``ask`` of a split's.

    ``numbers`` are those of a split's inputs that can be explained, which ``limit`` says in words.
    """

    model: Model
    background: Callable[[Model], Background]
    read: Callable[[str], Asked]
    ask: Callable[[Split, int], Asked]
    numbers: Callable[[Split], Int[Tensor, "N"]]
    limit: str = ""


def explainable(run: Run) -> bool:
    """Whether ``open_explained`` takes the run."""
    model = load_model(run)
    try:
        require_sight(model)
    except LabError:
        return False
    return True


def require_sight(model: Model) -> None:
    """Refuse a model that looks at no part of its input, or at parts that cannot be told apart."""
    require_attention(model)
    if not model.decodes:
        return
    kinds = {(site.queries, site.kind) for site in model.sites()}
    if ("answer", "cross") not in kinds:
        raise LabError(
            "the decoder has no cross attention left, so its answers are the same for every input and owed "
            "to no part of it"
        )
    if model.joined_keys() is not None and ("input", "self") not in kinds:
        raise LabError("the encoder has no attention left, so what its bridge joins is not known")


def open_explained(run: Run) -> Explained:
    """The run, whatever its task; one whose model looks at no part of its input is refused."""
    return _images(run) if run.spec().task.images else _tokens(run)


def explain_run(
    run: Run, text: str, *, place: str = "", seed: int = 0, progress: Progress = silent
) -> Explanation:
    """Every method on one input, for one place of the answer or for all of them."""
    opened = open_explained(run)
    asked = opened.read(text)
    return explain_asked(run, opened, asked, asked.at(place), seed=seed, progress=progress)


def explain_asked(
    run: Run,
    opened: Explained,
    asked: Asked,
    chosen: Parts,
    *,
    effort: Effort = ONE,
    seed: int = 0,
    progress: Progress = silent,
) -> Explanation:
    """Every method on the ``chosen`` places; all of them are put to the same shuffled weights as well."""
    background, places = opened.background(opened.model), list[Place]()
    other = shuffled_weights(opened.model, seed=seed)
    blank = opened.background(other)
    for name, (question, sign) in chosen.items():
        judged = judge_question(question, background, effort=effort, seed=seed)
        shuffled = shuffled_ranks(judged.scored, question.of(other), blank, seed=seed)
        truth = asked.truths.get(name)
        places.append(explain_place(question, judged, shuffled, place=name, answer=sign, truth=truth))
        progress(len(places), len(chosen))
    return Explanation(
        run=run.name,
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


def explain_split(
    run: Run,
    count: int,
    *,
    place: str = "",
    split: Split = "test",
    seed: int = 0,
    progress: Progress = silent,
) -> Judgement:
    """Every method on ``count`` inputs of a split, drawn at random; kept in the run by ``kept_name``,
    unless more are kept there.

    Without a ``place`` each input is asked about one of its places, drawn at random too.
    """
    opened = open_explained(run)
    numbers = opened.numbers(split)
    if count > len(numbers):
        there = f"{len(numbers):,} {split} inputs{opened.limit}"
        raise InputError(f"--many is {count:,}, but there are {there}")
    order = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(seed))
    chosen = numbers[order[:count]].tolist()
    chance = random.Random(seed)

    def questions() -> Iterator[Question]:
        for number in chosen:
            asked = opened.ask(split, number).at(place)
            yield asked[place or chance.choice(list(asked))][0]

    found = explain_many(
        questions(), opened.model, opened.background, count=count, seed=seed, progress=progress
    )
    found = replace(found, run=run.name, split=split, place=place or None)
    save_if_larger(run, kept_name(split, place), found, "inputs")
    return found


def kept_name(split: Split, place: str = "") -> str:
    """What many inputs of a split said: about any place of their answers, or about one."""
    return f"explain-{split}-{place}" if place else f"explain-{split}"


def _tokens(run: Run) -> Explained:
    """Tasks whose inputs are tokens."""
    spec, model = run.spec(), load_model(run)
    require_sight(model)
    task, splits = spec.task, spec.task.splits(spec.seed)
    padding, training = task.padding, splits.train[slice(0, TRAINING)]

    def short(split: Split) -> Int[Tensor, "N"]:
        source = splits[split].inputs[0]
        if padding is None:
            return torch.arange(len(source))
        return ((source != padding).sum(dim=1) <= LONGEST).nonzero()[:, 0]

    return Explained(
        model,
        _maker(input_space(model, training.inputs[0]), training, padding=padding),
        lambda text: ask_tokens(task, model, task.parse(text)),
        lambda split, number: ask_tokens(task, model, one_example(splits[split], number, padding)),
        short,
        "" if padding is None else f" of at most {LONGEST} tokens",
    )


def _images(run: Run) -> Explained:
    """Tasks whose inputs are images."""
    classifier = image_classifier(run)
    task, (member,) = classifier.task, classifier.members
    model, scale, splits = member.model, member.scale, task.splits(run.spec().seed)
    require_attention(model, instead=use_instead(run, HEADLESS))
    require_sight(model)
    images = cache(classifier.images)

    def read(text: str) -> Asked:
        found = expand([text])
        if len(found) > 1:
            raise InputError(f"folder {text!r} holds {len(found)} pictures; one at a time is explained")
        (sample,) = ask(classifier, found)
        return ask_image(task, model, sample, scale=scale)

    def at(split: Split, number: int) -> Asked:
        part = images(split)
        pixels, truth = part.pixels[number : number + 1], part.truth[number].tolist()
        said = classifier.predict_proba(pixels)
        (sample,) = read_samples(task, [f"{split}:{number}"], pixels, said, [truth])
        return ask_image(task, model, sample, scale=scale)

    training = splits.train[slice(0, TRAINING)]
    background = _maker(input_space(model, training.inputs[0], empty=-scale[0] / scale[1]), training)
    return Explained(model, background, read, at, lambda split: torch.arange(len(splits[split])))


def _maker(
    space: Space, training: Examples, *, padding: int | None = None
) -> Callable[[Model], Background]:
    own = None if padding is None else training.inputs[0] != padding
    return lambda model: make_background(model, space, training, own=own)
