"""All methods on one question: a number for each part, high where it speaks for the answer.

What attention itself says about the parts of an input: three methods, and what they are made from.

Which queries count is a row w (T,) of weights: of an encoder-decoder the place that is asked about, of a
classifier the token that its pool takes, and all alike where a pool takes all. With A the mean over heads
and P what stands between keys and parts (the bridge, or nothing):

    attention   w A P of the last attention that looks at the input
    rollout     w R, by Abnar and Zuidema (2020); see ``attnlab.analysis.rollout``
    gradient x attention   w R with, over all attentions,
                A' = mean over heads of max(0, dE/dA * A),    R <- R + A' R,    R = I at first,
                and for cross attention   R_ts <- R_ts + N(R_tt)^T A' P N(R_ss),   R_ts = 0 at first,
                N(R) = I + (R - I) with rows that sum to 1; where w takes all alike, w (R - I), since w I
                gives every part the same and would drown what attention adds in a picture

(Chefer, Gur and Wolf, "Generic Attention-model Explainability for Interpreting Bi-Modal and Encoder-Decoder
Transformers", 2021). dE/dA is the gradient of the evidence.

What changes when something does: methods that ask the model again.

    integrated gradients   (x - b) times the mean of dE/dx on the straight way from the baseline b to x,
                           summed over the coordinates of a part (Sundararajan, Taly and Yan, 2017);
                           all parts together make e(x) - e(b); b is the mean of training examples
    occlusion              e(x) - mean of e(x without the part), others resampled in its place, or, in a
                           list, the one before it repeated                  (Zeiler and Fergus, 2014)
    heads                  sum over heads of [e - e(head taken out)] times what the head gives the part

A head is taken out towards its mean over training examples. What it gives to a part is its own pattern: of
the query that is asked about for cross attention and for the last attention of a classifier, and of all
queries alike for the others. Self attention of a decoder looks at no part.

Do two methods put the parts of an input into the same order?

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
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnlab.analysis.ablate.baselines import Baseline, mask_without, masked
from attnlab.analysis.explain.perturbation import ROWS, Background, Question
from attnlab.analysis.rollout import rollout
from attnlab.model import Model, Site
from attnlab.results import Interval
from attnlab.taps import record

ATTENTION, ROLLOUT, GRADIENT = "attention", "rollout", "gradient x attention"
INTEGRATED, OCCLUSION, HEADS = "integrated gradients", "occlusion", "heads"
METHODS = (ATTENTION, ROLLOUT, GRADIENT, INTEGRATED, OCCLUSION, HEADS)

DRAWS = 8
"""Training examples whose parts stand in for one that is occluded."""


@dataclass(frozen=True)
class Scored:
    """What each method gives each part; ``gap`` is what integrated gradients miss to completeness.

    All on the CPU.
    """

    scores: dict[str, Float[Tensor, "S"]]
    effects: dict[str, float]
    gap: float


def score(question: Question, background: Background, *, seed: int = 0) -> Scored:
    seen, effects = see(question), head_effects(question, background.heads)
    mean = background.mean(len(question.parts))
    integrated = integrated_gradients(question, mean)
    scores = {
        ATTENTION: raw_attention(seen),
        ROLLOUT: attention_rollout(seen),
        GRADIENT: gradient_attention(seen),
        INTEGRATED: integrated,
        OCCLUSION: occlusion(question, background, draws=DRAWS, seed=seed),
        HEADS: pushed_effects(seen, effects),
    }
    gap = completeness_gap(question, mean, integrated)
    return Scored({name: each.cpu() for name, each in scores.items()}, effects, gap)


@dataclass(frozen=True)
class Seen:
    """Patterns (H, T, S) and gradients of the evidence with respect to them, by attention."""

    question: Question
    patterns: dict[str, Float[Tensor, "_ _ _"]]
    gradients: dict[str, Float[Tensor, "_ _ _"]]
    rows: Float[Tensor, "T"]

    @cached_property
    def sites(self) -> dict[str, Site]:
        """The attentions that were used, by path."""
        return {site.path: site for site in self.question.model.sites() if site.path in self.patterns}

    @cached_property
    def bridge(self) -> Float[Tensor, "M S"] | None:
        """P, from the keys of cross attention to the parts; None where each key is a part."""
        joined = self.question.model.joined_keys()
        if joined is None:
            return None
        with torch.no_grad():
            return joined(torch.eye(len(self.question.parts), device=self.rows.device)[None])[0]

    def to_parts(self, site: Site, keys: Float[Tensor, "*H M"]) -> Float[Tensor, "*H S"]:
        """What the keys of an attention get, as what the parts get; tokens in front are no parts."""
        if self.bridge is not None and site.kind == "cross":
            keys = keys @ self.bridge
        return keys[..., -len(self.question.parts) :]

    @cached_property
    def last(self) -> Site:
        """The last attention that looks at the input."""
        return [site for site in self.sites.values() if site.keys == "input"][-1]


def see(question: Question) -> Seen:
    model = question.model
    names = {f"{site.path}.pattern": site.path for site in model.sites()}
    with torch.enable_grad(), record(model, *names, detach=False) as seen:
        evidence = question.evidence(question.parts.detach().clone()[None].requires_grad_())
    used = {path: seen[name] for name, path in names.items() if name in seen}
    slopes = torch.autograd.grad(evidence.sum(), list(used.values()), allow_unused=True)
    return Seen(
        question,
        {path: pattern.detach()[0] for path, pattern in used.items()},
        {
            path: torch.zeros_like(pattern[0]) if slope is None else slope[0]
            for (path, pattern), slope in zip(used.items(), slopes, strict=True)
        },
        model.read_weights(*question.inputs, place=question.place or 0)[0],
    )


def raw_attention(seen: Seen) -> Float[Tensor, "S"]:
    """w A P of the last attention that looks at the input."""
    return seen.to_parts(seen.last, seen.rows @ seen.patterns[seen.last.path].mean(dim=0))


def attention_rollout(seen: Seen) -> Float[Tensor, "S"]:
    held = rollout(seen.question.model, {path: each[None] for path, each in seen.patterns.items()})[0]
    return (seen.rows @ held)[-len(seen.question.parts) :]


def gradient_attention(seen: Seen) -> Float[Tensor, "S"]:
    """w R, with patterns weighted by their gradients; w (R - I) where w takes all alike."""
    weighted = {
        path: (seen.gradients[path] * pattern).clamp(min=0).mean(dim=0)
        for path, pattern in seen.patterns.items()
    }
    decodes = seen.question.model.decodes
    size = len(seen.question.parts) if decodes else len(seen.rows)
    start = inner = torch.eye(size, device=seen.rows.device)
    own, across = torch.eye(len(seen.rows), device=start.device), start.new_zeros(len(seen.rows), size)
    for site in seen.sites.values():
        each = weighted[site.path]
        if site.kind == "cross":
            keys = each if seen.bridge is None else each @ seen.bridge
            across = across + _normed(own).T @ keys @ _normed(inner)
        elif site.queries == "answer":
            own, across = own + each @ own, across + each @ across
        else:
            inner = inner + each @ inner
    if not decodes and bool((seen.rows == seen.rows[0]).all()):
        inner = inner - start
    return (seen.rows @ (across if decodes else inner))[-len(seen.question.parts) :]


def _normed(relevance: Float[Tensor, "T T"]) -> Float[Tensor, "T T"]:
    """N(R); a row that holds nothing but itself stays."""
    own = torch.eye(len(relevance), device=relevance.device)
    added = relevance - own
    total = added.sum(dim=1, keepdim=True)
    return own + torch.where(total > 0, added / total.clamp(min=torch.finfo(total.dtype).tiny), added)


STEPS = 64
"""Points on the way from the baseline to the input."""
WITH_GRADIENT = 8
"""How many times the memory of a plain pass one takes that is differentiated."""
STRONGEST = 5
"""Heads whose effects are shown."""


def integrated_gradients(
    question: Question, baseline: Float[Tensor, "S F"], *, steps: int = STEPS
) -> Float[Tensor, "S"]:
    """One number a part; by Gauss and Legendre's rule with so many ``steps``."""
    from captum.attr import IntegratedGradients  # here: it takes a second to import

    way = IntegratedGradients(question.evidence)
    found = way.attribute(
        question.parts[None],
        baselines=baseline[None],
        n_steps=steps,
        method="gausslegendre",
        internal_batch_size=None if question.rows == ROWS else max(1, question.rows // WITH_GRADIENT),
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
    evidence = question.many(question.evidence, torch.cat((question.parts[None], changed.flatten(0, 1))))
    return evidence[0] - evidence[1:].view(changed.shape[:2]).mean(dim=0)


@torch.no_grad()
def head_effects(question: Question, baseline: Baseline) -> dict[str, float]:
    """The evidence that is lost without each head alone; one pass for all."""
    model = question.model
    heads = [name for site in model.sites() for name in site.head_names]
    each = [mask_without(model, removed) for removed in ([], *([head] for head in heads))]
    mask = {path: torch.stack([kept[path] for kept in each]) for path in each[0]}
    rows = question.parts.expand(1 + len(heads), -1, -1)
    with masked(model, mask, baseline):
        evidence = question.evidence(rows)
    return dict(zip(heads, (evidence[0] - evidence[1:]).tolist(), strict=True))


def strongest_heads(effects: Mapping[str, float]) -> dict[str, float]:
    """The heads without which the evidence changes most, up or down, the strongest first."""
    return dict(sorted(effects.items(), key=lambda each: -abs(each[1]))[:STRONGEST])


def pushed_effects(seen: Seen, effects: dict[str, float]) -> Float[Tensor, "S"]:
    """Effects of heads, shared out among the parts by their patterns."""
    total = seen.rows.new_zeros(len(seen.question.parts))
    for site in seen.sites.values():
        if site.keys == "answer":
            continue
        pattern = seen.patterns[site.path]
        asked = site == seen.last or site.kind == "cross"
        keys = (seen.rows @ pattern) if asked else pattern.mean(dim=1)
        shares = total.new_tensor([effects[name] for name in site.head_names])
        total += shares @ seen.to_parts(site, keys)
    return total


EVEN = 1e-6
"""Numbers that differ by less than this share of the largest are the same."""


def spearman(a: Float[Tensor, "S"], b: Float[Tensor, "S"]) -> float:
    """rho, 0 where one of the two orders nothing."""
    from scipy.stats import spearmanr  # here: it takes half a second to import

    return 0.0 if _even(a) or _even(b) else float(spearmanr(a.numpy(), b.numpy()).statistic)


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


def _even(values: Tensor) -> bool:
    return bool((values.max() - values.min()) <= EVEN * torch.maximum(values.max(), -values.min()))


@torch.no_grad()
def shuffled_weights(model: Model, *, seed: int = 0) -> Model:
    """A copy of ``model`` with the entries of each tensor in a random order."""
    other, generator = deepcopy(model), Generator().manual_seed(seed)
    for weight in other.parameters():
        order = torch.randperm(weight.numel(), generator=generator)
        weight.copy_(weight.flatten()[order.to(weight.device)].view_as(weight))
    return other


def shuffled_ranks(
    scored: Scored, question: Question, background: Background, *, seed: int = 0
) -> dict[str, float]:
    """rho of the sizes of each method's scores with those of ``question``, which asks shuffled weights."""
    other = score(question, background, seed=seed)
    return {name: spearman(scored.scores[name].abs(), other.scores[name].abs()) for name in METHODS}
