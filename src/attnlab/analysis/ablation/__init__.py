"""Ablation: what is lost when heads are taken out, alone and together."""

from attnlab.analysis.ablation.baselines import (
    Baseline,
    mean_baseline,
    resample_baseline,
    zero_baseline,
)
from attnlab.analysis.ablation.constants import optimal_baseline
from attnlab.analysis.ablation.masks import Mask, check_heads, head_names, mask_without, masked
from attnlab.analysis.ablation.singles import ALL, by_group, ranked
from attnlab.analysis.ablation.walking import Heads, answers_without
from attnlab.analysis.ablation.whole import Ablation, Stages, ablate, ablate_run, make_baseline

__all__ = [
    "ALL",
    "Ablation",
    "Baseline",
    "Heads",
    "Mask",
    "Stages",
    "ablate",
    "ablate_run",
    "answers_without",
    "by_group",
    "check_heads",
    "head_names",
    "make_baseline",
    "mask_without",
    "masked",
    "mean_baseline",
    "optimal_baseline",
    "ranked",
    "resample_baseline",
    "zero_baseline",
]
