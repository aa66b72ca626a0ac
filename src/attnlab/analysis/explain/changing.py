"""What changes when something does: methods that ask the model again.

    integrated gradients   (x - b) times the mean of dE/dx on the straight way from the baseline b to x,
                           summed over the coordinates of a part (Sundararajan, Taly and Yan, 2017);
                           all parts together make e(x) - e(b); b is the mean of training examples
    occlusion              e(x) - mean of e(x without the part), others resampled in its place, or, in a
                           list, the one before it repeated                  (Zeiler and Fergus, 2014)
    heads                  sum over heads of [e - e(head taken out)] times what the head gives the part

A head is taken out towards its mean over training examples. What it gives to a part is its own pattern: of
the query that is asked about for cross attention and for the last attention of a classifier, and of all
queries alike for the others. Self attention of a decoder looks at no part.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.ablate import Baseline, masked
from attnlab.analysis.explain.looking import Seen
from attnlab.analysis.explain.questions import Question, in_batches
from attnlab.analysis.explain.replacing import Background

STEPS = 64
"""Points on the way from the baseline to the input."""
STRONGEST = 5
"""Heads whose effects are shown."""


def integrated_gradients(
    question: Question, baseline: Float[Tensor, "S F"], *, steps: int = STEPS
) -> Float[Tensor, "S"]:
    """One number a part; by Gauss and Legendre's rule with so many ``steps``."""
    from captum.attr import IntegratedGradients  # here: it takes a second to import

    way = IntegratedGradients(question.evidence)
    found = way.attribute(
        question.parts[None], baselines=baseline[None], n_steps=steps, method="gausslegendre"
    )
    return found[0].detach().sum(dim=1)


@torch.no_grad()
def completeness_gap(
    question: Question, baseline: Float[Tensor, "S F"], scores: Float[Tensor, "S"]
) -> float:
    """How far the sum of integrated gradients is from e(x) - e(b)."""
    here, there = question.evidence(torch.stack((question.parts, baseline))).tolist()
    return abs(scores.sum().item() - (here - there))


def occlusion(
    question: Question, background: Background, *, draws: int = 1, seed: int = 0
) -> Float[Tensor, "S"]:
    """The evidence that is lost without each part alone, the mean over what stands in for it."""
    alone = torch.eye(len(question.parts), dtype=torch.bool)
    changed = background.replaced(background.real, question.parts, alone, draws=draws, seed=seed)
    evidence = in_batches(question.evidence, torch.cat((question.parts[None], changed.flatten(0, 1))))
    return evidence[0] - evidence[1:].view(changed.shape[:2]).mean(dim=0)


@torch.no_grad()
def head_effects(question: Question, baseline: Baseline) -> dict[str, float]:
    """The evidence that is lost without each head alone; one pass for all."""
    model = question.model
    heads = [name for site in model.sites() for name in site.head_names]
    first, mask = 0, {}
    for site in model.sites():
        mask[site.path] = torch.ones(1 + len(heads), site.heads)
        own = torch.arange(site.heads)
        mask[site.path][1 + first + own, own] = 0
        first += site.heads
    rows = question.parts.expand(1 + len(heads), -1, -1)
    with masked(model, mask, baseline):
        evidence = question.evidence(rows)
    return dict(zip(heads, (evidence[0] - evidence[1:]).tolist(), strict=True))


def strongest_heads(effects: Mapping[str, float]) -> dict[str, float]:
    """The heads without which the evidence changes most, up or down, the strongest first."""
    return dict(sorted(effects.items(), key=lambda each: -abs(each[1]))[:STRONGEST])


def pushed_effects(seen: Seen, effects: dict[str, float]) -> Float[Tensor, "S"]:
    """Effects of heads, shared out among the parts by their patterns."""
    total = torch.zeros(len(seen.question.parts))
    for site in seen.sites.values():
        if site.keys == "answer":
            continue
        pattern = seen.patterns[site.path]
        asked = site == seen.last or site.kind == "cross"
        keys = (seen.rows @ pattern) if asked else pattern.mean(dim=1)
        total += torch.tensor([effects[name] for name in site.head_names]) @ seen.to_parts(site, keys)
    return total
