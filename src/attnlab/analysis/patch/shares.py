"""The share of a difference that is restored, with an interval over pairs."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.heads import draws
from attnlab.errors import LabError
from attnlab.results import Interval

RESAMPLES = 1000
_ENDS = torch.tensor([0.025, 0.975], dtype=torch.double)


@final
@dataclass(frozen=True)
class Share:
    """A ratio of means and its 95% interval."""

    value: float
    interval: Interval

    def rounded(self, decimals: int) -> "Share":
        """To so many decimals."""
        low, high = self.interval
        return Share(round(self.value, decimals), (round(low, decimals), round(high, decimals)))


def shares(
    patched: Float[Tensor, "M N"], base: Float[Tensor, "N"], donor: Float[Tensor, "N"]
) -> list[Share]:
    """(mean patched - mean base) / (mean donor - mean base) of each row.

    The interval is that of the bootstrap over pairs (percentiles; Efron, 1979): numerator and denominator
    are drawn together, and every row sees the same draws.
    """
    moved, whole = (patched - base).double(), (donor - base).double()
    if not abs(float(whole.mean())) > 1e-9 * (1 + float(base.abs().max())):
        raise LabError("base and donor do not differ in what is read, so there is nothing to restore")
    weights = _draws(len(base))
    spread = (moved @ weights.T) / (whole @ weights.T)  # (M, R)
    ends = spread.quantile(_ENDS, dim=1)
    values = moved.mean(dim=1) / whole.mean()
    return [
        Share(value, (low, high)) for value, low, high in zip(values.tolist(), *ends.tolist(), strict=True)
    ]


def denominator(base: Float[Tensor, "N"], donor: Float[Tensor, "N"]) -> Share:
    """What shares are of: mean donor - mean base, with the interval of the same draws."""
    whole = (donor - base).double()
    low, high = (whole @ _draws(len(base)).T / len(base)).quantile(_ENDS).tolist()
    return Share(whole.mean().item(), (low, high))


def _draws(count: int) -> Float[Tensor, "R N"]:
    """How often each of ``count`` pairs is drawn, in each resample."""
    return draws(count, RESAMPLES, torch.Generator().manual_seed(0))
