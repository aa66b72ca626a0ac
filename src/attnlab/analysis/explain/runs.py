"""Runs of every task, ready to be asked why: a question for each thing that the model says.

A sequence has a question for each of its tokens but the end. Of an image only classes are said, never the
start token, so that probabilities are those of the classes.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.explain.asking import Asked, explain_asked, input_space, judge_drawn, require_sight
from attnlab.analysis.explain.perturbation import Background, Question, Space, make_background
from attnlab.analysis.explain.results import Explanation, Judgement
from attnlab.analysis.image_classifier import HEADLESS, ImageClassifier, image_classifier
from attnlab.analysis.predict import answer, fed_inputs
from attnlab.analysis.record import patch_names
from attnlab.analysis.samples import Sample, expand, read_inputs
from attnlab.analysis.subjects import read_example, require_attention
from attnlab.devices import device_of, to_device_of
from attnlab.errors import InputError, LabError, brief
from attnlab.images import scaled
from attnlab.model import Model
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
    seed: int = 0

    def background(self, model: Model) -> Background:
        """Of the run's model, or of one with other weights."""
        training, padding = self.splits.train[slice(0, TRAINING)].to(device_of(model)), self.task.padding
        own = None if padding is None else training.inputs[0] != padding
        return make_background(model, self.space, training, own=own)

    def read(self, text: str) -> Asked:
        """Questions about an input as users write it."""
        if self.reader is None:
            return self.about_tokens(read_example(self.task, self.seed, text))
        found = expand([text])
        if len(found) > 1:
            raise InputError(
                f"folder {brief(text)} holds {len(found)} pictures; one at a time is explained"
            )
        return self.about_image(*read_inputs(self.reader, found))

    def ask(self, split: Split, number: int) -> Asked:
        """Questions about an input of a split."""
        if self.reader is None:
            return self.about_tokens(one_example(self.splits[split], number, self.task.padding))
        return self.about_image(*read_inputs(self.reader, [f"{split}:{number}"]))

    def numbers(self, split: Split) -> Int[Tensor, "N"]:
        """Those of a split's inputs that can be explained."""
        examples, padding = self.splits[split], self.task.padding
        if padding is None:
            return torch.arange(len(examples))
        return ((examples.inputs[0] != padding).sum(dim=1) <= LONGEST).nonzero()[:, 0]

    @torch.no_grad()
    def about_tokens(self, example: Examples) -> Asked:
        """Why the model answers so to one example of tokens, without padding."""
        shown = self.task.show(example)
        if len(shown.labels) > LONGEST:
            count = len(shown.labels)
            raise InputError(f"the input has {count:,} tokens; at most {LONGEST} can be explained")
        return self._about(example, answer(self.task, self.model, example), shown)

    @torch.no_grad()
    def about_image(self, sample: Sample) -> Asked:
        """Why the model answers so to an image."""
        reader = self.reader
        assert reader is not None
        image, said = scaled(sample.pixels[None], reader.members[0].scale), torch.tensor([sample.answer])
        names = patch_names(image.shape[-2:], self.space.parts(self.model, (image,)).shape[1])
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
        inputs = to_device_of(self.model, *fed_inputs(task, example, said))
        sequence = task.start is not None

        def sign(token: Int[Tensor, ""]) -> str:
            return task.symbols(token[None])[0] if sequence else task.answer(token)

        rows = zip(task.places_of(said.shape[1]), said[0], example.targets.flatten(), strict=True)
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


def open_explained(run: RunFolder) -> Explained:
    """The run, whatever its task; one whose model looks at no part of its input is refused."""
    spec = run.spec()
    reader = image_classifier(run) if spec.task.images else None
    model = run.model if reader is None else reader.members[0].model
    require_attention(model, instead="" if reader is None else HEADLESS)
    require_sight(model)
    return replace(explained_of(spec.task, model, spec.task.splits(spec.seed), reader), seed=spec.seed)


def explained_of(task: Task, model: Model, splits: Splits, reader: ImageClassifier | None) -> Explained:
    """A model, its task's examples, and the ``reader`` of its images if it reads any."""
    mean, deviation = (0.0, 1.0) if reader is None else reader.members[0].scale
    empty = None if reader is None else -mean / deviation
    space = input_space(model, splits.train[slice(0, 1)].inputs, empty=empty)
    return Explained(task, model, splits, space, reader)


def explain_run(
    run: RunFolder, text: str, *, place: str = "", seed: int = 0, progress: Progress = silent
) -> Explanation:
    """Every method on one input, for one place of the answer or for all of them."""
    opened = open_explained(run)
    asked = opened.read(text)
    return explain_asked(
        asked, opened.model, opened.background, place, name=run.name, seed=seed, progress=progress
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
        raise InputError(f"many is {count:,}, but there are {len(numbers):,} {split} inputs{limit}")

    def ask(number: int) -> Asked:
        return opened.ask(split, number)

    found = judge_drawn(
        ask, numbers, count, opened.model, opened.background, place, seed=seed, progress=progress
    )
    found = replace(found, run=run.name, split=split)
    save_if_larger(run, kept_name(split, place), found, "inputs")
    return found


def kept_name(split: Split, place: str = "") -> str:
    """What many inputs of a split said: about any place of their answers, or about one."""
    return f"explain-{split}-{place}" if place else f"explain-{split}"
