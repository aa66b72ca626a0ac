"""From an input of a run to the questions about it, a question for each thing that the model says.

A sequence has a question for each of its tokens but the end, a class has one. The answer that is explained
is the one that the model gives, right or wrong. Of an image only classes are said, never the start token,
so that probabilities are those of the classes.

Runs of every task, ready to be asked why.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.explain.curves import ONE, Effort, explain_place, judge_question
from attnlab.analysis.explain.methods import METHODS, shuffled_ranks, shuffled_weights
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
from attnlab.analysis.image_classifier import HEADLESS, ImageClassifier, image_classifier, use_instead
from attnlab.analysis.predict import answer, fed_inputs
from attnlab.analysis.record import patch_names
from attnlab.analysis.samples import Sample, expand, read_inputs
from attnlab.analysis.subjects import require_attention
from attnlab.errors import InputError, LabError, nearest
from attnlab.images import scaled
from attnlab.model import Model
from attnlab.models.images import patch_grid
from attnlab.progress import Progress, silent
from attnlab.runs import RunFolder, save_if_larger
from attnlab.sets import Examples, Shown, Splits, one_example
from attnlab.specs import Split, Task

LONGEST = 128
"""Numbers of a list that can be explained; each is taken away several times."""
END = "end"
"""The place that ends an answer; nothing brings it about."""


def wrong_words(answer: str, truth: str | None) -> str:
    """What follows an answer that is known to be wrong; nothing if it is right or nobody knows."""
    return "" if truth in (None, answer) else f", wrong, it is {truth}"


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
            raise InputError(f"{self.name} has no place {place!r}{nearest(place, self.questions)}")
        return {place: self.questions[place]}

    @property
    def correct(self) -> bool | None:
        return None if self.truth is None else self.truth == self.output


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
    """A run, ready to be asked why; it has a ``reader`` if it reads images."""

    task: Task
    model: Model
    splits: Splits
    space: Space
    reader: ImageClassifier | None

    def background(self, model: Model) -> Background:
        """Of the run's model, or of one with other weights."""
        training, padding = self.splits.train[slice(0, TRAINING)], self.task.padding
        own = None if padding is None else training.inputs[0] != padding
        return make_background(model, self.space, training, own=own)

    def read(self, text: str) -> Asked:
        """Questions about an input as users write it."""
        if self.reader is None:
            return self._about_tokens(self.task.parse(text))
        found = expand([text])
        if len(found) > 1:
            raise InputError(f"folder {text!r} holds {len(found)} pictures; one at a time is explained")
        return self._about_image(self.reader, *read_inputs(self.reader, found))

    def ask(self, split: Split, number: int) -> Asked:
        """Questions about an input of a split."""
        if self.reader is None:
            return self._about_tokens(one_example(self.splits[split], number, self.task.padding))
        return self._about_image(self.reader, *read_inputs(self.reader, [f"{split}:{number}"]))

    def numbers(self, split: Split) -> Int[Tensor, "N"]:
        """Those of a split's inputs that can be explained."""
        examples, padding = self.splits[split], self.task.padding
        if padding is None:
            return torch.arange(len(examples))
        return ((examples.inputs[0] != padding).sum(dim=1) <= LONGEST).nonzero()[:, 0]

    @torch.no_grad()
    def _about_tokens(self, example: Examples) -> Asked:
        """Why the model answers so to one example of tokens, without padding."""
        shown = self.task.show(example)
        if len(shown.labels) > LONGEST:
            count = len(shown.labels)
            raise InputError(f"the input has {count:,} tokens; at most {LONGEST} can be explained")
        return self._about(example, answer(self.task, self.model, example), shown)

    @torch.no_grad()
    def _about_image(self, reader: ImageClassifier, sample: Sample) -> Asked:
        image, said = scaled(sample.pixels[None], reader.members[0].scale), torch.tensor([sample.answer])
        names = patch_names(image.shape[-2:], self.space.parts(self.model, image).shape[1])
        example = Examples((image,), said if sample.truth is None else torch.tensor([sample.truth]))
        shown = Shown(sample.name, names, sample.shown)
        found = self._about(example, said, shown, classes=len(reader.task.classes))
        pixels = sample.pixels.float() / 255
        return replace(found, image=pixels if pixels.ndim == 2 else pixels.movedim(0, -1))

    def _about(
        self, example: Examples, said: Int[Tensor, "1 T"], shown: Shown, *, classes: int | None = None
    ) -> Asked:
        """A question for each token of the answer but its end, or one about the class."""
        task = self.task
        inputs, sequence = fed_inputs(task, example, said), task.start is not None

        def sign(token: Int[Tensor, ""]) -> str:
            return task.symbols(token[None])[0] if sequence else task.answer(token)

        rows = zip(task.places(), said[0], example.targets.flatten(), strict=True)
        questions = {
            name: Question(
                self.model,
                inputs,
                self.space,
                int(one),
                place if sequence else None,
                classes,
                sign=sign(one),
                truth=None if shown.truth is None else sign(true),
            )
            for place, (name, one, true) in enumerate(rows)
            if name != END
        }
        return Asked(shown.name, task.answer(said[0]), shown.labels, questions, shown.truth)


def explainable(run: RunFolder) -> bool:
    model = run.model
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


def open_explained(run: RunFolder) -> Explained:
    """The run, whatever its task; one whose model looks at no part of its input is refused."""
    spec = run.spec()
    reader = image_classifier(run) if spec.task.images else None
    model = run.model if reader is None else reader.members[0].model
    require_attention(model, instead="" if reader is None else use_instead(run, HEADLESS))
    require_sight(model)
    splits = spec.task.splits(spec.seed)
    mean, deviation = (0.0, 1.0) if reader is None else reader.members[0].scale
    empty = None if reader is None else -mean / deviation
    space = input_space(model, splits.train[slice(0, 1)].inputs[0], empty=empty)
    return Explained(spec.task, model, splits, space, reader)


def explain_run(
    run: RunFolder, text: str, *, place: str = "", seed: int = 0, progress: Progress = silent
) -> Explanation:
    """Every method on one input, for one place of the answer or for all of them."""
    opened = open_explained(run)
    return explain_asked(run, opened, opened.read(text), place, seed=seed, progress=progress)


def explain_asked(
    run: RunFolder,
    opened: Explained,
    asked: Asked,
    place: str,
    *,
    effort: Effort = ONE,
    seed: int = 0,
    progress: Progress = silent,
) -> Explanation:
    """The same of what was ``asked``; all places are put to the same shuffled weights as well."""
    chosen = asked.at(place)
    background, places = opened.background(opened.model), list[Place]()
    other = shuffled_weights(opened.model, seed=seed)
    blank = opened.background(other)
    for name, question in chosen.items():
        judged = judge_question(question, background, effort=effort, seed=seed)
        shuffled = shuffled_ranks(judged.scored, question.of(other), blank, seed=seed)
        places.append(explain_place(name, question, judged, shuffled))
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
    run: RunFolder,
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
        limit = "" if opened.task.padding is None else f" of at most {LONGEST} tokens"
        raise InputError(f"--many is {count:,}, but there are {len(numbers):,} {split} inputs{limit}")
    order = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(seed))
    chosen = numbers[order[:count]].tolist()
    chance = random.Random(seed)

    def questions() -> Iterator[Question]:
        for number in chosen:
            asked = opened.ask(split, number).at(place)
            yield asked[place or chance.choice(list(asked))]

    found = explain_many(
        questions(), opened.model, opened.background, count=count, seed=seed, progress=progress
    )
    found = replace(found, run=run.name, split=split, place=place or None)
    save_if_larger(run, kept_name(split, place), found, "inputs")
    return found


def kept_name(split: Split, place: str = "") -> str:
    """What many inputs of a split said: about any place of their answers, or about one."""
    return f"explain-{split}-{place}" if place else f"explain-{split}"
