"""All methods on one question: a number for each part, high where it speaks for the answer."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.explain.changing import (
    completeness_gap,
    head_effects,
    integrated_gradients,
    occlusion,
    pushed_effects,
)
from attnlab.analysis.explain.looking import attention_rollout, gradient_attention, raw_attention, see
from attnlab.analysis.explain.questions import Question
from attnlab.analysis.explain.replacing import Background

ATTENTION, ROLLOUT, GRADIENT = "attention", "rollout", "gradient x attention"
INTEGRATED, OCCLUSION, HEADS = "integrated gradients", "occlusion", "heads"
METHODS = (ATTENTION, ROLLOUT, GRADIENT, INTEGRATED, OCCLUSION, HEADS)

DRAWS = 8
"""Training examples whose parts stand in for one that is occluded."""


@dataclass(frozen=True)
class Scored:
    """What each method gives each part; ``gap`` is what integrated gradients miss to completeness."""

    scores: dict[str, Float[Tensor, "S"]]
    effects: dict[str, float]
    gap: float


def score(question: Question, background: Background, *, seed: int = 0) -> Scored:
    """Every method's word on one question."""
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
    return Scored(scores, effects, completeness_gap(question, mean, integrated))
