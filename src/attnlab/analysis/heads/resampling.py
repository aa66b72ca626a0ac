"""Intervals of many means at once: the bootstrap over examples (Efron, 1979), as matrix products.

Example n brings a sum x[n] over r[n] rows, and the mean over all rows is sum x / sum r. A resample draws
N of the N examples with replacement; with W how often each is drawn, the means of all resamples are
(W x) / (W r). The interval goes from the 2.5th to the 97.5th of 100 parts of these means.
"""

import torch
from jaxtyping import Float
from torch import Tensor

RESAMPLES = 2000
_PART = 250  # resamples at a time


def mean_intervals(sums: Float[Tensor, "N M"], rows: Float[Tensor, "N M"]) -> Float[Tensor, "M 2"]:
    """Ends of the 95% interval of each column's mean; nan where fewer than two examples have rows."""
    counts, column = torch.unique(rows, dim=1, return_inverse=True)  # most columns have the same rows
    generator = torch.Generator().manual_seed(0)
    means = []
    for _ in range(RESAMPLES // _PART):
        drawn = _draws(len(sums), _PART, generator)
        means.append((drawn @ sums) / (drawn @ counts)[:, column])
    ends = torch.cat(means).nanquantile(torch.tensor([0.025, 0.975], dtype=torch.double), dim=0).T
    return ends.masked_fill(((rows > 0).sum(dim=0) < 2)[:, None], torch.nan)


def _draws(count: int, resamples: int, generator: torch.Generator) -> Float[Tensor, "R N"]:
    """How often each of ``count`` examples is drawn."""
    drawn = torch.randint(count, (resamples, count), generator=generator)
    ones = torch.ones(resamples, count, dtype=torch.double)
    return torch.zeros_like(ones).scatter_add_(1, drawn, ones)
