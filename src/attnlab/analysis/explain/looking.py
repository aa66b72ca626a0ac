"""What attention itself says about the parts of an input: three methods, and what they are made from.

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
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.explain.questions import Question
from attnlab.analysis.rollout import rolled_out
from attnlab.model import Site
from attnlab.taps import record


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
            return joined(torch.eye(len(self.question.parts))[None])[0]

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
    """Look at every attention while the model answers."""
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
    """w R."""
    held = rolled_out(seen.question.model, {path: each[None] for path, each in seen.patterns.items()})[0]
    return (seen.rows @ held)[-len(seen.question.parts) :]


def gradient_attention(seen: Seen) -> Float[Tensor, "S"]:
    """w R, with patterns weighted by their gradients; w (R - I) where w takes all alike."""
    weighted = {
        path: (seen.gradients[path] * pattern).clamp(min=0).mean(dim=0)
        for path, pattern in seen.patterns.items()
    }
    decodes = seen.question.model.decodes
    size = len(seen.question.parts) if decodes else len(seen.rows)
    inner = torch.eye(size)
    own, across = torch.eye(len(seen.rows)), torch.zeros(len(seen.rows), size)
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
        inner = inner - torch.eye(size)
    return (seen.rows @ (across if decodes else inner))[-len(seen.question.parts) :]


def _normed(relevance: Float[Tensor, "T T"]) -> Float[Tensor, "T T"]:
    """N(R); a row that holds nothing but itself stays."""
    own = torch.eye(len(relevance))
    added = relevance - own
    total = added.sum(dim=1, keepdim=True)
    return own + torch.where(total > 0, added / total.clamp(min=torch.finfo(total.dtype).tiny), added)
