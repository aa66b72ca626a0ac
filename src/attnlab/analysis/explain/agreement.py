"""Do two methods put the parts of an input into the same order?

Spearman's rho: the correlation of ranks, equal numbers sharing their mean rank. Attention has no sign, so
it is the sizes |s| that are compared. A method that gives all parts the same number orders nothing; its
rho counts as 0.

The randomised-weights check: a method that says the same of a model that has learned nothing explains
nothing that was learned (Adebayo et al., "Sanity Checks for Saliency Maps", 2018).

Every tensor of the model keeps its numbers, but in a random order, so that sizes stay as they were and all
that was learned is gone.
"""

import math
from collections.abc import Mapping
from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnlab.analysis.explain.methods import METHODS, Scored, score
from attnlab.analysis.explain.perturbation import Background, Question
from attnlab.model import Model
from attnlab.results import Interval

EVEN = 1e-6
"""Numbers that differ by less than this share of the largest are the same."""


def spearman(a: Float[Tensor, "S"], b: Float[Tensor, "S"]) -> float:
    first, second = _centred(ranks(a)), _centred(ranks(b))
    spread = (first.norm() * second.norm()).item()
    return 0.0 if _even(a) or _even(b) or spread == 0 else (first @ second).item() / spread


def ranks(values: Float[Tensor, "S"]) -> Float[Tensor, "S"]:
    """From 0 for the lowest; equal numbers share their mean rank."""
    lower = (values[None] < values[:, None]).sum(dim=1)
    same = (values[None] == values[:, None]).sum(dim=1)
    return lower + (same - 1).double() / 2


def agreement(scores: Mapping[str, Float[Tensor, "S"]]) -> dict[str, dict[str, float]]:
    """rho of the sizes of every method with every method."""
    sizes = {name: each.abs() for name, each in scores.items()}
    return {a: {b: spearman(sizes[a], sizes[b]) for b in sizes} for a in sizes}


def rho_interval(rho: float, size: int) -> Interval | None:
    """95% interval of rho of ``size`` parts: Fisher's z with the variance 1.06 / (n - 3)
    (Fieller, Hartley and Pearson, 1957); None of fewer than 5 parts.
    """
    if size < 5:
        return None
    if abs(rho) >= 1:
        return rho, rho
    half = 1.959964 * math.sqrt(1.06 / (size - 3))
    return math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)


def _centred(values: Tensor) -> Tensor:
    return values - values.mean()


def _even(values: Tensor) -> bool:
    return bool((values.max() - values.min()) <= EVEN * torch.maximum(values.max(), -values.min()))


@torch.no_grad()
def shuffled_weights(model: Model, *, seed: int = 0) -> Model:
    """A copy of ``model`` with the entries of each tensor in a random order."""
    other, generator = deepcopy(model), Generator().manual_seed(seed)
    for weight in other.parameters():
        order = torch.randperm(weight.numel(), generator=generator)
        weight.copy_(weight.flatten()[order].view_as(weight))
    return other


def shuffled_ranks(
    scored: Scored, question: Question, background: Background, *, seed: int = 0
) -> dict[str, float]:
    """rho of the sizes of each method's scores with those of ``question``, which asks shuffled weights."""
    other = score(question, background, seed=seed)
    return {name: spearman(scored.scores[name].abs(), other.scores[name].abs()) for name in METHODS}
