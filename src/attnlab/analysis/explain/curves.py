"""Deletion and insertion curves: is what a method puts first what the answer hangs on?

Parts are taken away in the order of their scores, the highest first, and the answer's probability is read
off (Samek et al., 2017; Petsiuk, Das and Saenko, 2018). The area under this curve is small for a good
order. Insertion goes the other way: all parts are gone and come back in that order, and a good order has a
large area. Random orders say what chance gives:

    advantage = random area - area      of deletion
    advantage = area - random area      of insertion

both above 0 for a method that knows more than chance. Equal scores are put in a random order.

One question, every method, judged: scores, ranks that agree, and curves against chance.
"""

from dataclasses import dataclass
from typing import get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from attnlab.analysis.explain.agreement import agreement, rho_interval
from attnlab.analysis.explain.methods import METHODS, Scored, score
from attnlab.analysis.explain.perturbation import Background, Question, in_batches
from attnlab.analysis.explain.results import Mode, Place, Replacement
from attnlab.results import Estimate

MODES: tuple[Mode, ...] = get_args(Mode)
STEPS = 10
"""Steps from none of the parts to all of them, if there are so many."""


def order_of(scores: Float[Tensor, "S"], generator: Generator) -> Int[Tensor, "S"]:
    shuffled = torch.randperm(len(scores), generator=generator)
    return shuffled[scores[shuffled].argsort(descending=True, stable=True)]


def random_orders(size: int, count: int, generator: Generator) -> list[Int[Tensor, "S"]]:
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


CONTRAST = "contrast"
"""How far a part is from the mean of training examples, |x - mean|: no model is asked."""
RANDOM = "random"
"""One more random order, judged as if it were a method: it must come out at chance."""
CONTROLS = (CONTRAST, RANDOM)


@dataclass(frozen=True)
class Effort:
    """How often chance is asked: random ``orders``, and ``draws`` of resampled parts."""

    orders: int = 12
    draws: int = 4


ONE = Effort()
MANY = Effort(orders=4, draws=2)


@dataclass(frozen=True)
class Judged:
    """``curves`` (M, K) by replacement and mode: methods, then controls, then the orders of chance."""

    scored: Scored
    contrast: Float[Tensor, "S"]
    shares: list[float]
    curves: dict[tuple[Replacement, Mode], Float[Tensor, "M K"]]

    @property
    def replacements(self) -> list[Replacement]:
        return list(dict.fromkeys(replacement for replacement, _ in self.curves))

    def areas(self, replacement: Replacement, mode: Mode) -> Float[Tensor, "M"]:
        return area(self.curves[replacement, mode], len(next(iter(self.scored.scores.values()))))

    def advantages(self, replacement: Replacement, mode: Mode) -> dict[str, float]:
        """Of each method and each control over chance."""
        areas = self.areas(replacement, mode)
        names = (*METHODS, *CONTROLS)
        found = advantage(areas[: len(names)], areas[len(names) :].mean(), mode).tolist()
        return dict(zip(names, found, strict=True))


def judge_question(
    question: Question, background: Background, *, effort: Effort = ONE, seed: int = 0
) -> Judged:
    """Score the parts, then take them away and put them back."""
    scored, size = score(question, background, seed=seed), len(question.parts)
    generator = Generator().manual_seed(seed)
    contrast = (question.parts - background.mean(size)).norm(dim=1)
    ranked = [*(scored.scores[name] for name in METHODS), contrast]
    orders = [order_of(each, generator) for each in ranked]
    orders += random_orders(size, 1 + effort.orders, generator)
    found = {}
    for replacement in background.replacements:
        for mode in MODES:
            found[replacement, mode] = curves(
                question, orders, background, replacement, mode, draws=effort.draws, seed=seed + 1
            )
    return Judged(scored, contrast, [count / size for count in counts_of(size)], found)


def explain_place(
    question: Question,
    judged: Judged,
    shuffled: dict[str, float],
    *,
    place: str,
    answer: str,
    truth: str | None,
) -> Place:
    """All of it, with the rho of each method with itself on ``shuffled`` weights."""
    scores, size = judged.scored.scores, len(question.parts)
    with torch.no_grad():
        evidence = question.evidence(question.parts[None]).item()
    gains = {each: judged.advantages(*each) for each in judged.curves}
    return Place(
        place=place,
        answer=answer,
        truth=truth,
        probability=torch.tensor(evidence).sigmoid().item(),
        evidence=evidence,
        scores={name: each.tolist() for name, each in scores.items()},
        heads=judged.scored.effects,
        completeness_gap=judged.scored.gap,
        agreement={a: _estimates(row, size) for a, row in agreement(scores).items()},
        shuffled=_estimates(shuffled, size),
        replacements=judged.replacements,
        shares=judged.shares,
        curves={
            replacement: {mode: _named(judged.curves[replacement, mode]) for mode in MODES}
            for replacement in judged.replacements
        },
        advantage={
            name: {
                replacement: {mode: gains[replacement, mode][name] for mode in MODES}
                for replacement in judged.replacements
            }
            for name in (*METHODS, *CONTROLS)
        },
    )


def _estimates(rhos: dict[str, float], size: int) -> dict[str, Estimate]:
    return {name: Estimate(rho, rho_interval(rho, size)) for name, rho in rhos.items()}


def _named(each: Float[Tensor, "M K"]) -> dict[str, list[float]]:
    """A curve a method; of chance the mean, and where 95% of its orders lie."""
    chance = each[len(METHODS) + len(CONTROLS) :]
    low, high = torch.quantile(chance, torch.tensor([0.025, 0.975]), dim=0).tolist()
    named = dict(zip(METHODS, each.tolist(), strict=False))
    return {**named, "chance": chance.mean(dim=0).tolist(), "chance_low": low, "chance_high": high}
