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

from attnlab.analysis.explain.methods import METHODS, Scored, agreement, rho_interval, score
from attnlab.analysis.explain.perturbation import Background, Question
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
    chances = question.many(question.chance, changed.flatten(0, 1))
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


Gains = dict[str, dict[str, dict[str, float]]]
"""Advantages over chance by method, replacement and mode."""


@dataclass(frozen=True)
class Judged:
    """``curves`` (M, K) by replacement and mode: methods, then controls, then the orders of chance."""

    scored: Scored
    contrast: Float[Tensor, "S"]
    curves: dict[Replacement, dict[Mode, Float[Tensor, "M K"]]]

    def advantages(self) -> Gains:
        """Of each method and each control over chance."""
        names = (*METHODS, *CONTROLS)
        gains: Gains = {name: {replacement: {} for replacement in self.curves} for name in names}
        for replacement, modes in self.curves.items():
            for mode, curve in modes.items():
                areas = area(curve, len(self.contrast))
                found = advantage(areas[: len(names)], areas[len(names) :].mean(), mode).tolist()
                for name, gain in zip(names, found, strict=True):
                    gains[name][replacement][mode] = gain
        return gains


def judge_question(
    question: Question, background: Background, *, effort: Effort = ONE, seed: int = 0
) -> Judged:
    """Score the parts, then take them away and put them back."""
    scored, size = score(question, background, seed=seed), len(question.parts)
    generator = Generator().manual_seed(seed)
    contrast = (question.parts - background.mean(size)).norm(dim=1).cpu()
    ranked = [*(scored.scores[name] for name in METHODS), contrast]
    orders = [order_of(each, generator) for each in ranked]
    orders += random_orders(size, 1 + effort.orders, generator)

    def curve(replacement: Replacement, mode: Mode) -> Float[Tensor, "M K"]:
        draws = effort.draws
        return curves(question, orders, background, replacement, mode, draws=draws, seed=seed + 1)

    found = {each: {mode: curve(each, mode) for mode in MODES} for each in background.replacements}
    return Judged(scored, contrast, found)


def explain_place(name: str, question: Question, judged: Judged, shuffled: dict[str, float]) -> Place:
    """All of it, with the rho of each method with itself on ``shuffled`` weights."""
    scores, size = judged.scored.scores, len(question.parts)
    with torch.no_grad():
        evidence = question.evidence(question.parts[None])
        chances = (question.logits(question.parts[None]) / question.model.temperature).softmax(dim=-1)

    def estimates(rhos: dict[str, float]) -> dict[str, Estimate]:
        return {method: Estimate(rho, rho_interval(rho, size)) for method, rho in rhos.items()}

    return Place(
        place=name,
        answer=question.sign,
        truth=question.truth,
        probability=chances[0, question.answer].item(),
        evidence=evidence.item(),
        scores={method: each.tolist() for method, each in scores.items()},
        heads=judged.scored.effects,
        completeness_gap=judged.scored.gap,
        agreement={method: estimates(row) for method, row in agreement(scores).items()},
        shuffled=estimates(shuffled),
        replacements=list(judged.curves),
        shares=[count / size for count in counts_of(size)],
        curves={
            replacement: {mode: _named(curve) for mode, curve in modes.items()}
            for replacement, modes in judged.curves.items()
        },
        advantage=judged.advantages(),
    )


def _named(each: Float[Tensor, "M K"]) -> dict[str, list[float]]:
    """A curve a method; of chance the mean, and where 95% of its orders lie."""
    chance = each[len(METHODS) + len(CONTROLS) :]
    low, high = torch.quantile(chance, torch.tensor([0.025, 0.975]), dim=0).tolist()
    named = dict(zip(METHODS, each.tolist(), strict=False))
    return {**named, "chance": chance.mean(dim=0).tolist(), "chance_low": low, "chance_high": high}
