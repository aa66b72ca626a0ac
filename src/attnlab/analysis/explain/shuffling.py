"""The randomised-weights check: a method that says the same of a model that has learned nothing explains
nothing that was learned (Adebayo et al., "Sanity Checks for Saliency Maps", 2018).

Every tensor of the model keeps its numbers, but in a random order, so that sizes stay as they were and all
that was learned is gone.
"""

from copy import deepcopy

import torch
from torch import Generator

from attnlab.analysis.explain.agreement import spearman
from attnlab.analysis.explain.methods import METHODS, Scored, score
from attnlab.analysis.explain.questions import Question
from attnlab.analysis.explain.replacing import Background
from attnlab.model import Model


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
