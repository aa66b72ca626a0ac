"""A question to explain: one input, one answer, and the parts of the input that may have brought it about.

Parts x (S, F) are the patches of an image, F pixels each, or the vectors of a text's tokens. What all
methods explain is the evidence for the answer,

    e = log p / (1 - p) = logit of the answer - log sum over all others of exp logit,

which, unlike the probability p, does not level off where a model is sure.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.model import Model
from attnlab.models.images import cut_patches, join_patches

ROWS = 256  # inputs that a model is given at once


@final
@dataclass(frozen=True)
class Patches:
    """The parts are squares of ``patch`` x ``patch`` pixels; ``empty`` is a pixel without ink."""

    patch: int
    empty: float = 0.0

    def parts(self, model: Model, source: Float[Tensor, "N *C Y X"]) -> Float[Tensor, "N S F"]:
        return cut_patches(source, self.patch)

    def answered(self, model: Model, inputs: tuple[Tensor, ...], parts: Float[Tensor, "N S F"]) -> Tensor:
        """What ``model`` says to an image of these patches."""
        image, *rest = inputs
        _, *channels, height, _ = image.shape
        joined = join_patches(parts, height // self.patch, channels)
        return model(joined, *(_repeated(each, len(parts)) for each in rest))


@final
@dataclass(frozen=True)
class Tokens:
    """The parts are vectors that the module at ``embed`` makes; ``front`` of them stand before the text."""

    embed: str
    front: int = 0
    empty: float = 0.0

    def parts(self, model: Model, source: Tensor) -> Float[Tensor, "N S F"]:
        return model.get_submodule(self.embed)(source)[:, self.front :]

    def answered(self, model: Model, inputs: tuple[Tensor, ...], parts: Float[Tensor, "N S F"]) -> Tensor:
        """What ``model`` says if its embedding gives these vectors."""

        def put(module: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> Tensor:
            return torch.cat((made[:, : self.front], parts), dim=1)

        handle = model.get_submodule(self.embed).register_forward_hook(put)
        try:
            return model(*(_repeated(each, len(parts)) for each in inputs))
        finally:
            handle.remove()


Space = Patches | Tokens
"""What an input is taken apart into."""


@final
@dataclass(frozen=True)
class Question:
    """Why does ``model`` give this answer to ``inputs``, which are one example without padding?

    ``place`` says which of several targets is meant; the tokens that a decoder was fed before it stay as
    they are. Only the first ``classes`` of the vocabulary can be said, as where a start token never is;
    None: all.
    """

    model: Model
    inputs: tuple[Tensor, ...]
    space: Space
    answer: int
    place: int | None = None
    classes: int | None = None

    def of(self, model: Model) -> "Question":
        """The same question to another model."""
        return replace(self, model=model)

    @cached_property
    def parts(self) -> Float[Tensor, "S F"]:
        """x, as the input gives them."""
        with torch.no_grad():
            return self.space.parts(self.model, self.inputs[0])[0]

    def logits(self, parts: Float[Tensor, "N S F"]) -> Float[Tensor, "N V"]:
        """Of the place that is asked about, for any parts."""
        said = self.space.answered(self.model, self.inputs, parts)
        return (said if self.place is None else said[:, self.place])[:, : self.classes]

    def evidence(self, parts: Float[Tensor, "N S F"]) -> Float[Tensor, "N"]:
        """e, with gradients."""
        logits = self.logits(parts)
        others = torch.ones(logits.shape[1], dtype=torch.bool)
        others[self.answer] = False
        return logits[:, self.answer] - logits[:, others].logsumexp(dim=1)

    def chance(self, parts: Float[Tensor, "N S F"]) -> Float[Tensor, "N"]:
        """p of the answer."""
        return self.evidence(parts).sigmoid()


@torch.no_grad()
def in_batches(measure: Callable[[Tensor], Tensor], parts: Float[Tensor, "N S F"]) -> Float[Tensor, "N"]:
    """``measure`` of many inputs, some at a time."""
    return torch.cat([measure(parts[start : start + ROWS]) for start in range(0, len(parts), ROWS)])


def _repeated(each: Tensor, count: int) -> Tensor:
    return each.expand(count, *each.shape[1:])
