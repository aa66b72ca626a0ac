"""Ablation: what is lost when heads are taken out, alone and together."""

from attnlab.analysis.ablate.ablation import (
    Ablation,
    AblationResult,
    Stages,
    ablate,
    ablate_run,
    make_baseline,
)
from attnlab.analysis.ablate.baselines import (
    Baseline,
    Mask,
    check_heads,
    head_names,
    mask_without,
    masked,
    mean_baseline,
    resample_baseline,
    zero_baseline,
)
from attnlab.analysis.ablate.constants import optimal_baseline
from attnlab.analysis.ablate.effects import ALL, Single, ranked
from attnlab.analysis.ablate.without import Heads, evaluate_without

__all__ = [
    "ALL",
    "Ablation",
    "AblationResult",
    "Baseline",
    "Heads",
    "Mask",
    "Single",
    "Stages",
    "ablate",
    "ablate_run",
    "check_heads",
    "evaluate_without",
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
