"""Whether a model that is sure to 90% is right in 90% of the cases.

Answers are sorted into bins of equal width by their probability. With n_b answers in bin b, of which a
share acc_b is right at a mean probability of conf_b, the expected calibration error (Naeini, Cooper and
Hauskrecht, 2015; Guo et al., 2017) is

    ECE = sum over b of n_b / N |acc_b - conf_b|
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

BINS = 15


def calibrate(
    said: Float[Tensor, "N D V"], truth: Int[Tensor, "N D"], *, bins: int = BINS
) -> dict[str, Any]:
    """The calibration error over all digits of all images, and the bins it is made of."""
    sure, answer = said.double().flatten(0, 1).max(dim=1)
    right = (answer == truth.flatten()).double()
    place = (sure * bins).long().clamp(0, bins - 1)
    count = torch.zeros(bins, dtype=torch.float64).index_add_(0, place, torch.ones_like(sure))
    hits = torch.zeros_like(count).index_add_(0, place, right)
    sums = torch.zeros_like(count).index_add_(0, place, sure)
    return {
        "ece": ((hits - sums).abs().sum() / len(sure)).item(),
        "confidence": sure.mean().item(),
        "accuracy": right.mean().item(),
        "bins": [
            {
                "low": each / bins,
                "high": (each + 1) / bins,
                "count": int(count[each]),
                "confidence": (sums[each] / count[each]).item() if count[each] else None,
                "accuracy": (hits[each] / count[each]).item() if count[each] else None,
            }
            for each in range(bins)
        ],
    }


def log_loss(said: Float[Tensor, "N D V"], truth: Int[Tensor, "N D"]) -> float:
    """Mean of -log p(truth) over all digits."""
    return -said.gather(-1, truth[..., None]).double().clamp(min=1e-38).log().mean().item()
