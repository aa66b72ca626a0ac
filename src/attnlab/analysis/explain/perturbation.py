"""A question to explain: one input, one answer, and the parts of the input that may have brought it about.

Parts x (S, F) are the patches of an image, F pixels each, or the vectors of a text's tokens. What all
methods explain is the evidence for the answer,

    e = log p / (1 - p) = logit of the answer - log sum over all others of exp logit,

which, unlike the probability p, does not level off where a model is sure.

What takes the place of parts that are taken away.

    zero       nothing: pixels without ink, a vector of zeros
    mean       the mean of the parts of training examples at the same place
    resample   the parts of another training example at the same places, several times over
    repeat     of a list, instead of resampling: the part before, or the first that is left; a number drawn
               at random would be out of order, and a repeated one never is

Where inputs differ in length, the mean is that of all places. Zero and the mean are inputs that the model
may never have met, so an answer can change for that alone (Hooker et al., 2019); resampled parts are real,
but bring news of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from attnlab.analysis.ablate.baselines import Baseline, mean_baseline
from attnlab.analysis.explain.results import Replacement
from attnlab.model import Model
from attnlab.models.images import cut_patches, join_patches
from attnlab.sets import Examples

ROWS = 256  # inputs that a model is given at once


@final
@dataclass(frozen=True)
class Patches:
    """The parts are squares of ``patch`` x ``patch`` pixels of the input number ``at``; ``empty`` is a
    pixel without ink.
    """

    patch: int
    empty: float = 0.0
    at: int = 0

    def parts(self, model: Model, inputs: tuple[Tensor, ...]) -> Float[Tensor, "N S F"]:
        return cut_patches(inputs[self.at], self.patch)

    def answered(self, model: Model, inputs: tuple[Tensor, ...], parts: Float[Tensor, "N S F"]) -> Tensor:
        _, *channels, height, _ = inputs[self.at].shape
        joined = join_patches(parts, height // self.patch, channels)
        return model(*_put(inputs, len(parts), {self.at: joined}))


@final
@dataclass(frozen=True)
class Tokens:
    """The parts are vectors that the module at ``embed`` makes of the input number ``at``; ``front`` of
    them stand before the text. Inside the model, examples lie along the ``axis`` of what it gives.
    """

    embed: str
    front: int = 0
    empty: float = 0.0
    at: int = 0
    axis: int = 0

    def parts(self, model: Model, inputs: tuple[Tensor, ...]) -> Float[Tensor, "N S F"]:
        return model.get_submodule(self.embed)(inputs[self.at])[:, self.front :]

    def answered(self, model: Model, inputs: tuple[Tensor, ...], parts: Float[Tensor, "N S F"]) -> Tensor:
        def put(module: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> Tensor:
            front = made.movedim(self.axis, 0)[:, : self.front]
            return torch.cat((front, parts), dim=1).movedim(0, self.axis)

        handle = model.get_submodule(self.embed).register_forward_hook(put)
        try:
            return model(*_put(inputs, len(parts), {}))
        finally:
            handle.remove()


@final
@dataclass(frozen=True)
class Vectors:
    """The parts are the tokens of inputs that are vectors already; those of several ``inputs`` stand side
    by side.
    """

    inputs: tuple[int, ...] = (0,)
    empty: float = 0.0

    def parts(self, model: Model, inputs: tuple[Tensor, ...]) -> Float[Tensor, "N S F"]:
        return torch.cat([inputs[number] for number in self.inputs], dim=-1)

    def answered(self, model: Model, inputs: tuple[Tensor, ...], parts: Float[Tensor, "N S F"]) -> Tensor:
        split = torch.split(parts, [inputs[number].shape[-1] for number in self.inputs], dim=-1)
        return model(*_put(inputs, len(parts), dict(zip(self.inputs, split, strict=True))))


Space = Patches | Tokens | Vectors
"""What an input is taken apart into."""


@final
@dataclass(frozen=True)
class Question:
    """Why does ``model`` give this answer to ``inputs``, which are one example without padding?

    ``place`` says which of several targets is meant; the tokens that a decoder was fed before it stay as
    they are. Only the first ``classes`` of the vocabulary can be said, as where a start token never is;
    None: all. ``sign`` is the answer as people read it, ``truth`` the right one if it is known. The model
    is given at most so many ``rows`` at once.
    """

    model: Model
    inputs: tuple[Tensor, ...]
    space: Space
    answer: int
    place: int | None = None
    classes: int | None = None
    sign: str = ""
    truth: str | None = None
    rows: int = ROWS

    def of(self, model: Model) -> "Question":
        return replace(self, model=model)

    @cached_property
    def parts(self) -> Float[Tensor, "S F"]:
        with torch.no_grad():
            return self.space.parts(self.model, self.inputs)[0]

    def logits(self, parts: Float[Tensor, "N S F"]) -> Float[Tensor, "N V"]:
        """Of the place that is asked about, for any parts."""
        said = self.space.answered(self.model, self.inputs, parts)
        return (said if self.place is None else said[:, self.place])[:, : self.classes]

    def evidence(self, parts: Float[Tensor, "N S F"]) -> Float[Tensor, "N"]:
        logits = self.logits(parts)
        others = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
        others[self.answer] = False
        return logits[:, self.answer] - logits[:, others].logsumexp(dim=1)

    def chance(self, parts: Float[Tensor, "N S F"]) -> Float[Tensor, "N"]:
        return self.evidence(parts).sigmoid()

    @torch.no_grad()
    def many(
        self, measure: Callable[[Tensor], Tensor], parts: Float[Tensor, "N S F"]
    ) -> Float[Tensor, "N"]:
        """``measure`` of many inputs, some at a time; on the CPU."""
        return torch.cat([measure(some) for some in torch.split(parts, self.rows)]).cpu()


def _put(inputs: tuple[Tensor, ...], count: int, new: dict[int, Tensor]) -> list[Tensor]:
    """``inputs``, which are one example, so many times, with ``new`` ones in the place of some."""
    return [
        new[number] if number in new else each.expand(count, *each.shape[1:])
        for number, each in enumerate(inputs)
    ]


Real = Literal["resample", "repeat"]


@dataclass(frozen=True)
class Background:
    """Parts of training examples, (N, 1, F) if places do not matter, and the mean z of every head.

    ``real`` is the replacement that leaves inputs as the model knows them; parts are occluded by it.
    """

    parts: Float[Tensor, "N S F"]
    empty: float
    heads: Baseline
    real: Real

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        return ("zero", "mean", self.real)

    def mean(self, size: int) -> Float[Tensor, "S F"]:
        return self.parts.mean(dim=0).expand(size, -1)

    def replaced(
        self,
        replacement: Replacement,
        parts: Float[Tensor, "S F"],
        away: Bool[Tensor, "N S"],
        *,
        draws: int = 1,
        seed: int = 0,
    ) -> Float[Tensor, "R N S F"]:
        """The input without the parts that are ``away``, N times, each once or ``draws`` times over."""
        away = away.to(parts.device)
        match replacement:
            case "zero":
                values = torch.full_like(parts, self.empty)[None]
            case "mean":
                values = self.mean(len(parts))[None]
            case "resample":
                generator = Generator().manual_seed(seed)
                drawn = torch.randint(len(self.parts), (draws,), generator=generator)
                values = self.parts[drawn.to(parts.device)]
            case "repeat":
                return parts[kept_before(away)][None]
        return torch.where(away[..., None], values[:, None], parts)


def kept_before(away: Bool[Tensor, "N S"]) -> Int[Tensor, "N S"]:
    """The nearest place at or before each that is not ``away``; where there is none, the first such."""
    places = torch.arange(away.shape[1], device=away.device).expand_as(away)
    last = places.masked_fill(away, -1).cummax(dim=1).values
    first = (~away).long().argmax(dim=1, keepdim=True)
    return torch.where(last < 0, first, last)


@torch.no_grad()
def make_background(
    model: Model,
    space: Space,
    training: Examples,
    *,
    own: Bool[Tensor, "N S"] | None = None,
    by_place: bool = True,
) -> Background:
    """Of training examples; ``own`` is true where there is no padding, for lists of different lengths.

    Without ``by_place`` any part stands in for any other.
    """
    parts = space.parts(model, training.inputs)
    heads = mean_baseline(model, training, by_place=own is None and by_place)
    if own is not None:
        return Background(parts[own][:, None], space.empty, heads, "repeat")
    return Background(parts if by_place else parts.flatten(0, 1)[:, None], space.empty, heads, "resample")
