"""Classifiers of lists whose answers are known without training."""

from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlab.models import Classifier
from attnlab.models.classifier import Embed, Evidence
from attnlab.pooling import BoundaryPool, LowestPool, Pool
from attnlab.positions import Positions
from attnlab.problems.sorting.words import PAD


@final
class Steps(Embed):
    """Of each number: itself, and how far it is above the one before and below the one after."""

    def forward(self, given: Int[Tensor, "B L"]) -> Float[Tensor, "B L 3"]:
        numbers = given.float()
        step = numbers[:, 1:] - numbers[:, :-1]
        edge = torch.full((len(given), 1), 99.0)
        return torch.stack((numbers, torch.cat((edge, step), 1), torch.cat((step, edge), 1)), dim=-1)

    def mask(self, given: Int[Tensor, "B L"]) -> Bool[Tensor, "B L"] | None:
        own = given != PAD
        return None if bool(own.all()) else own


@final
class LeastStep(nn.Module):
    """The smaller of a number's two steps, and half a point for being equal."""

    def forward(self, x: Float[Tensor, "B L 3"]) -> Float[Tensor, "B L 1"]:
        return x[..., 1:].amin(dim=-1, keepdim=True) + 0.5


@final
class First(nn.Module):
    """The first coordinate as evidence."""

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B 2"]:
        return torch.cat((-x[:, :1], x[:, :1]), dim=1)


def scoring_oracle() -> Classifier:
    """Always right, by the lowest score of its tokens."""
    return _classifier(LowestPool(score=LeastStep()), Evidence())


def pooling_oracle(*, weight: float = 1.0, bias: float = 0.5) -> Classifier:
    """Always right, by the least difference of neighbours; it has no scores of tokens."""
    pool = BoundaryPool(width=3)
    with torch.no_grad():
        pool.join.weight.zero_()
        pool.join.weight[0, 3] = weight  # of the least difference of the first coordinate
        pool.join.bias.fill_(bias)
    return _classifier(pool, First())


def constant_predictor(answer: int) -> Classifier:
    """Says ``answer`` to everything."""
    return pooling_oracle(weight=0.0, bias=1.0 if answer else -1.0)


def _classifier(pool: Pool, readout: nn.Module) -> Classifier:
    return Classifier(
        embed=Steps(), positions=Positions(), encoder=[], norm=nn.Identity(), pool=pool, readout=readout
    ).eval()
