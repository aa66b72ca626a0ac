"""Shapley values of heads (Shapley, 1953): what a head adds, averaged over who else is there.

With v(S) the exact match of the model that keeps the heads S, all others at the baseline,

    phi(h) = mean over all orders of the heads of v(those before h, and h) - v(those before h)

It is the one way to share v(all) - v(none) among the heads such that equal heads get equal shares, heads
that never add anything get nothing, and the shares of a sum of games add up. The mean over all orders is
estimated from orders drawn at random (Castro, Gomez and Tejada, 2009); its standard error is the deviation
between these orders over the root of their number. In every order what the heads add sums to
v(all) - v(none), so the estimates do so too.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.ablate.pairs import MATTERS, idle_heads
from attnlab.analysis.ablate.singles import Single
from attnlab.analysis.ablate.without import Heads
from attnlab.analysis.subjects import Answers


@dataclass(frozen=True)
class Worth:
    """A mean over orders and its standard error; None where there is but one order."""

    value: float
    error: float | None


@dataclass(frozen=True)
class HeadWorth:
    """The Shapley value of a head by exact match, and by how much the loss falls."""

    head: str
    value: float
    error: float | None
    loss: Worth


@dataclass(frozen=True)
class Shapley:
    """Exact match of the ``whole`` model and with none of the heads, and how they share the difference."""

    orders: int
    whole: float
    none: float
    heads: list[HeadWorth]

    @property
    def ranked(self) -> list[HeadWorth]:
        """The highest value first."""
        return sorted(self.heads, key=lambda row: -row.value)


def random_orders(heads: list[str], count: int, seed: int) -> list[list[str]]:
    """``count`` orders in which the heads come in, drawn at random."""
    chance = torch.Generator().manual_seed(seed)
    return [[heads[i] for i in torch.randperm(len(heads), generator=chance).tolist()] for _ in range(count)]


def missing_in(order: list[str]) -> list[Heads]:
    """The heads that are still out, before the first has come in and after each."""
    return [frozenset(order[arrived:]) for arrived in range(len(order) + 1)]


def describe_shapley(heads: list[str], orders: list[list[str]], answers: dict[Heads, Answers]) -> Shapley:
    """Shapley values by exact match, and by how much the loss falls."""
    exact = _shares(
        heads, orders, {out: each.exact.double().mean().item() for out, each in answers.items()}
    )
    loss = _shares(heads, orders, {out: -each.loss.double().mean().item() for out, each in answers.items()})
    none, whole = (answers[out] for out in (missing_in(orders[0])[0], frozenset[str]()))
    return Shapley(
        orders=len(orders),
        whole=whole.exact.double().mean().item(),
        none=none.exact.double().mean().item(),
        heads=[
            HeadWorth(head, *_estimate(exact[:, i]), Worth(*_estimate(loss[:, i])))
            for i, head in enumerate(heads)
        ],
    )


def _shares(
    heads: list[str], orders: list[list[str]], worth: dict[Heads, float]
) -> Float[Tensor, "orders heads"]:
    """What each head adds in each order."""
    rows = []
    for order in orders:
        values = [worth[out] for out in missing_in(order)]
        added = {head: values[i + 1] - values[i] for i, head in enumerate(order)}
        rows.append([added[head] for head in heads])
    return torch.tensor(rows, dtype=torch.double)


def only_in_company(singles: list[Single], found: Shapley) -> list[str]:
    """Heads that surely do not matter alone, with all others there, but have a Shapley value that does."""
    idle = idle_heads(singles)
    return [
        row.head
        for row in found.ranked
        if row.head in idle and row.error is not None and row.value - 2 * row.error > MATTERS
    ]


def _estimate(shares: Float[Tensor, "orders"]) -> tuple[float, float | None]:
    error = shares.std().item() / len(shares) ** 0.5 if len(shares) > 1 else None
    return shares.mean().item(), error
