"""From an input of a run to the questions about it, a question for each thing that the model says.

A sequence has a question for each of its tokens but the end, a class has one. The answer that is explained
is the one that the model gives, right or wrong. Of an image only classes are said, never the start token,
so that probabilities are those of the classes.

Runs of every task, ready to be asked why.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.explain.agreement import shuffled_ranks, shuffled_weights
from attnlab.analysis.explain.curves import ONE, Effort, explain_place, judge_question
from attnlab.analysis.explain.methods import METHODS
from attnlab.analysis.explain.perturbation import (
    Background,
    Patches,
    Question,
    Space,
    Tokens,
    make_background,
)
from attnlab.analysis.explain.results import Explanation, Judgement, Place
from attnlab.analysis.explain.verdict import explain_many
from attnlab.analysis.image_classifier import HEADLESS, image_classifier, use_instead
from attnlab.analysis.patterns import patch_names
from attnlab.analysis.predict import answer, fed_inputs
from attnlab.analysis.samples import Sample, expand, read_inputs, samples_at
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError, LabError, nearest
from attnlab.examples import Examples, Shown, one_example
from attnlab.images import ImageTask, Scale, scaled
from attnlab.model import Model
from attnlab.models.images import patch_grid
from attnlab.progress import Progress, silent
from attnlab.runs import Run, load_model, save_if_larger
from attnlab.spec import Split, Task

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
        if not place:
            return self.questions
        if place not in self.questions:
            raise InputError(f"{self.name} has no place {place!r}{nearest(place, self.questions)}")
        return {place: self.questions[place]}

    @property
    def correct(self) -> bool | None:
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
        (sample,) = read_inputs(classifier, found)
        return ask_image(task, model, sample, scale=scale)

    def at(split: Split, number: int) -> Asked:
        (sample,) = samples_at(classifier, split, images(split), torch.tensor([number]))
        return ask_image(task, model, sample, scale=scale)

    training = splits.train[slice(0, TRAINING)]
    background = _maker(input_space(model, training.inputs[0], empty=-scale[0] / scale[1]), training)
    return Explained(model, background, read, at, lambda split: torch.arange(len(splits[split])))


def _maker(
    space: Space, training: Examples, *, padding: int | None = None
) -> Callable[[Model], Background]:
    own = None if padding is None else training.inputs[0] != padding
    return lambda model: make_background(model, space, training, own=own)
