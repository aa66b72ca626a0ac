"""Ablation: what is lost when heads are taken out, alone and together."""

from attnlab.analysis.ablate.ablation import Ablation, ablate
from attnlab.analysis.ablate.baselines import mask_without, masked, mean_baseline

__all__ = ["Ablation", "ablate", "mask_without", "masked", "mean_baseline"]
