"""Ablation: what is lost when heads are taken out, alone and together."""

from attnlab.analysis.ablation.baselines import (
    Baseline,
    BaselineName,
    mean_baseline,
    resample_baseline,
    zero_baseline,
)
from attnlab.analysis.ablation.masks import Mask, check_heads, head_names, mask_without, masked

__all__ = [
    "Baseline",
    "BaselineName",
    "Mask",
    "check_heads",
    "head_names",
    "mask_without",
    "masked",
    "mean_baseline",
    "resample_baseline",
    "zero_baseline",
]
