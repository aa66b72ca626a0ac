"""Inputs of a model without a task, ready to be asked why: tensors, whose answers are numbers.

Parts that are taken away are replaced by those of other examples, as for a run. Where there are none, the
parts of the input itself stand in for each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.explain.asking import Asked, explain_asked, input_space, judge_drawn, require_sight
from attnlab.analysis.explain.curves import MANY
from attnlab.analysis.explain.perturbation import ROWS, Background, Question, Space, make_background
from attnlab.analysis.explain.results import Explanation, Judgement
from attnlab.analysis.explain.runs import LONGEST, TRAINING
from attnlab.analysis.record import patch_names
from attnlab.analysis.subjects import batch_size, require_examples
from attnlab.devices import device_of, to_device_of
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.sets import Examples


@dataclass(frozen=True)
class Plain:
    """``data`` is what replacements are made from, ``labels`` what the parts are called; None: not given.

    ``rows`` are given to the model at once.
    """

    model: Model
    space: Space
    data: Examples | None
    labels: Sequence[str] | None
    rows: int

    def backgrounds(self, asked: Question) -> "_Backgrounds":
        """What parts of a question are replaced by."""
        return _Backgrounds(self, asked)

    @torch.no_grad()
    def ask(self, inputs: tuple[Tensor, ...], truth: Int[Tensor, "1 *T"] | None, name: str) -> Asked:
        """A question for each token of the answer, or one about the class."""
        inputs = self.model.unpadded(to_device_of(self.model, *inputs))
        logits = self.model(*inputs)[0]
        if logits.dim() > 2 or logits.shape[-1] < 2:
            shape = ", ".join(map(str, logits.shape))
            raise InputError(
                f"the model gives numbers of the shape ({shape}) for an example, but logits of at least "
                "two classes are explained; make them by wrap(..., output=)"
            )
        answers = logits.argmax(dim=-1)
        places = ["class"] if answers.dim() == 0 else [str(place + 1) for place in range(len(answers))]
        said, known = answers.reshape(-1).tolist(), None if truth is None else truth.reshape(-1).tolist()
        questions = {
            place: Question(
                self.model,
                inputs,
                self.space,
                answer,
                number if answers.dim() else None,
                sign=str(answer),
                truth=None if known is None else str(known[number]),
                rows=self.rows,
            )
            for number, (place, answer) in enumerate(zip(places, said, strict=True))
        }
        count = self.space.parts(self.model, inputs).shape[1]
        return Asked(
            name,
            " ".join(map(str, said)),
            self._signs(inputs, count),
            questions,
            None if known is None else " ".join(map(str, known)),
            _pixels(inputs[self.model.source[0]][0].cpu()) if self.model.patch_size else None,
        )

    def _signs(self, inputs: tuple[Tensor, ...], count: int) -> list[str]:
        """What the parts are called: patches by row and column, tokens by their number."""
        source = inputs[self.model.source[0]]
        if self.model.patch_size is not None:
            return patch_names(source.shape[-2:], count)
        if count > LONGEST:
            raise InputError(f"the input has {count:,} tokens; at most {LONGEST} can be explained")
        if self.labels is not None and len(self.labels) != count:
            raise InputError(f"there are {len(self.labels)} labels for {count} tokens; give one for each")
        if self.labels is not None:
            return list(self.labels)
        if source.is_floating_point():
            return [str(place + 1) for place in range(count)]
        return [str(token) for token in source[0].tolist()]


@dataclass(frozen=True)
class _Backgrounds:
    """What parts are replaced by, for a model with any weights."""

    plain: Plain
    asked: Question

    def __call__(self, model: Model) -> Background:
        data, space = self.plain.data, self.plain.space
        if data is None:
            alone = Examples(self.asked.inputs, torch.zeros(1, dtype=torch.long))
            return make_background(model, space, alone, by_place=False)
        data = data[slice(0, TRAINING)].to(device_of(model))
        own = model.input_mask(*data.inputs)
        if own is not None and not bool(own.all()):
            return make_background(model, space, data, own=own)
        count = space.parts(model, data[slice(0, 1)].inputs).shape[1]
        return make_background(model, space, data, by_place=count == len(self.asked.parts))


def _pixels(image: Float[Tensor, "*C Y X"]) -> Float[Tensor, "Y X *_"]:
    """From 0 to 1, the darkest to the brightest; in grey, unless there are three channels."""
    low, high = image.min(), image.max()
    shown = (image - low) / (high - low).clamp(min=torch.finfo(image.dtype).tiny)
    if shown.dim() == 2:
        return shown
    return shown.movedim(0, -1) if len(shown) == 3 else shown.mean(dim=0)


def open_plain(
    model: Model,
    inputs: tuple[Tensor, ...],
    *,
    data: Examples | None = None,
    labels: Sequence[str] | None = None,
    empty: float = 0.0,
) -> Plain:
    """``model``, ready to be asked about inputs like these; one that looks at no part is refused."""
    require_sight(model)
    one = tuple(each[:1] for each in inputs)
    space = input_space(model, one, empty=None if model.patch_size is None else empty)
    rows = batch_size(model, Examples(one, torch.zeros(1, dtype=torch.long)), most=ROWS)
    return Plain(model, space, data, labels, rows)


def explain_input(
    plain: Plain,
    inputs: tuple[Tensor, ...],
    truth: Int[Tensor, "1 *T"] | None = None,
    *,
    place: str = "",
    name: str,
    seed: int = 0,
    progress: Progress = silent,
) -> Explanation:
    """Every method on one example, for one place of the answer or for all of them."""
    asked = plain.ask(inputs, truth, "the input")
    backgrounds = plain.backgrounds(next(iter(asked.questions.values())))
    return explain_asked(
        asked, plain.model, backgrounds, place, name=name, effort=MANY, seed=seed, progress=progress
    )


def explain_examples(
    plain: Plain,
    examples: Examples,
    count: int,
    *,
    place: str = "",
    name: str,
    seed: int = 0,
    progress: Progress = silent,
) -> Judgement:
    """Every method on ``count`` of ``examples``, drawn at random."""
    require_examples(examples)
    if count > len(examples):
        raise InputError(f"many is {count:,}, but there are {len(examples):,} examples")

    def ask(number: int) -> Asked:
        one = examples[slice(number, number + 1)]
        return plain.ask(one.inputs, one.targets, f"example {number}")

    first = next(iter(ask(0).questions.values()))
    numbers = torch.arange(len(examples))
    judge = judge_drawn(
        ask, numbers, count, plain.model, plain.backgrounds(first), place, seed=seed, progress=progress
    )
    return replace(judge, run=name, split=None)
