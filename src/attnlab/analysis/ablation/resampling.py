"""Intervals over examples, for many numbers at once (the bootstrap; Efron, 1979).

A bootstrap sample draws N of N examples with replacement, which gives each example a weight: how often it
was drawn. So the means of all numbers in all samples are one product of matrices. All numbers share the
samples, so a difference between two of them is a paired one. An interval goes from the 2.5% to the 97.5%
quantile of the samples' means.

A share that no example contradicts gets an interval without width; by the rule of three (Hanley and
Lippman-Hand, 1983) the true share may still be 3 / N away.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

SAMPLES = 2000
_PART = 250  # samples at a time, to bound memory
_ENDS = (0.025, 0.975)


def mean_intervals(
    values: Float[Tensor, "N M"], among: Bool[Tensor, "N M"] | None = None, *, samples: int = SAMPLES
) -> Float[Tensor, "M 2"]:
    """95% interval of each column's mean over the examples ``among``, or over all.

    The same number of examples gives the same samples. Samples that draw nobody of a group are left out.
    """
    group = torch.ones_like(values) if among is None else among.to(values.dtype)
    inside, chance = values * group, torch.Generator().manual_seed(0)
    means = []
    for start in range(0, samples, _PART):
        weights = _weights(min(_PART, samples - start), len(values), chance).to(values.dtype)
        means.append((weights @ inside) / (weights @ group))  # 0 / 0 is nan
    return torch.cat(means).nanquantile(torch.tensor(_ENDS, dtype=values.dtype), dim=0).T


def _weights(samples: int, count: int, chance: torch.Generator) -> Float[Tensor, "samples N"]:
    """How often each sample draws each example."""
    drawn = torch.randint(count, (samples, count), generator=chance)
    return torch.zeros(samples, count).scatter_add_(1, drawn, torch.ones(samples, count))
