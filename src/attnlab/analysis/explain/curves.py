"""Deletion and insertion curves: is what a method puts first what the answer hangs on?

Parts are taken away in the order of their scores, the highest first, and the answer's probability is read
off (Samek et al., 2017; Petsiuk, Das and Saenko, 2018). The area under this curve is small for a good
order. Insertion goes the other way: all parts are gone and come back in that order, and a good order has a
large area. Random orders say what chance gives:

    advantage = random area - area      of deletion
    advantage = area - random area      of insertion

both above 0 for a method that knows more than chance. Equal scores are put in a random order.
"""

from typing import get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from attnlab.analysis.explain.questions import Question, in_batches
from attnlab.analysis.explain.replacing import Background
from attnlab.analysis.explain.results import Mode, Replacement

MODES: tuple[Mode, ...] = get_args(Mode)
STEPS = 10
"""Steps from none of the parts to all of them, if there are so many."""


def order_of(scores: Float[Tensor, "S"], generator: Generator) -> Int[Tensor, "S"]:
    """Parts by falling score."""
    shuffled = torch.randperm(len(scores), generator=generator)
    return shuffled[scores[shuffled].argsort(descending=True, stable=True)]


def random_orders(size: int, count: int, generator: Generator) -> list[Int[Tensor, "S"]]:
    """What chance gives."""
    return [torch.randperm(size, generator=generator) for _ in range(count)]


def counts_of(size: int, steps: int = STEPS) -> list[int]:
    """How many parts are concerned at each step, from none to all."""
    steps = min(size, steps)
    return [round(step * size / steps) for step in range(steps + 1)]


def gone(orders: list[Int[Tensor, "S"]], mode: Mode) -> Bool[Tensor, "M K S"]:
    """Which parts are taken away at each step of each order."""
    size = len(orders[0])
    rank = torch.stack([order.argsort() for order in orders])[:, None]  # (M, 1, S)
    counts = torch.tensor(counts_of(size))[:, None]
    return rank < counts if mode == "deletion" else rank >= counts


def curves(
    question: Question,
    orders: list[Int[Tensor, "S"]],
    background: Background,
    replacement: Replacement,
    mode: Mode,
    *,
    draws: int = 1,
    seed: int = 0,
) -> Float[Tensor, "M K"]:
    """The answer's probability at each step of each order, the mean over what stands in."""
    away = gone(orders, mode)
    changed = background.replaced(replacement, question.parts, away.flatten(0, 1), draws=draws, seed=seed)
    chances = in_batches(question.chance, changed.flatten(0, 1))
    return chances.view(len(changed), *away.shape[:2]).mean(dim=0)


def area(curve: Float[Tensor, "*M K"], size: int) -> Float[Tensor, "*M"]:
    """Under the curve, by trapezes, over the share of ``size`` parts from 0 to 1."""
    return torch.trapezoid(curve, torch.tensor(counts_of(size)).to(curve) / size, dim=-1)


def advantage(areas: Float[Tensor, "*M"], chance: Float[Tensor, ""] | float, mode: Mode) -> Tensor:
    """How much better than chance, of whichever mode."""
    return chance - areas if mode == "deletion" else areas - chance
