"""Intervals and tests: of shares, and of what several seeds say together, against a baseline too.

How far this goes with few seeds: the smallest p that n differences can give is 2 / 2^n, so five seeds
never get below 0.0625 and six are the fewest that can pass 0.05. And a bootstrap interval of few values
is too narrow (Hesterberg, 2015), since it takes their spread for that of all seeds there might be: of
normal data, a 95% interval of 5 values holds the true mean about 83 times in 100, of 10 about 90 times.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite
from statistics import mean
from typing import Any

from attnlab.results import Interval


def proportion_interval(hits: int, count: int) -> Interval:
    """95% interval of a share (Wilson, 1927), which stays sound at 0 and 1."""
    from scipy.stats import binomtest  # here: it takes half a second to import

    if count == 0:
        return (0.0, 1.0)
    interval = binomtest(hits, count).proportion_ci(confidence_level=0.95, method="wilson")
    return (float(interval.low), float(interval.high))


def percent(share: float) -> str:
    """A share for people: never rounded up to 100%."""
    text = f"{100 * share:.2f}%"
    return text if share == 1 or text != "100.00%" else ">99.99%"


def plural(number: int, word: str) -> str:
    """So many things for people."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def percent_ends(interval: tuple[float, float]) -> str:
    """An interval of a share for people."""
    return " to ".join(map(percent, interval))


def two_places(value: float | None) -> str:
    """A number for people with two digits behind the point: never -0.00, and none where there is none."""
    return "none" if value is None else f"{round(value, 2) + 0.0:.2f}"


EXACT = 16  # up to so many differences every pattern of signs is tried
RESAMPLES = 9_999
_DIGITS = 11

Values = Sequence[float | int | None]
"""Of each seed; None where its run failed or never got there."""


@dataclass(frozen=True, kw_only=True)
class SeedValues:
    """One measure of one variant over the seeds. One seed alone is ``anecdotal``."""

    values: list[float | None]
    n: int
    mean: float | None
    interval: Interval | None
    anecdotal: bool

    @property
    def known(self) -> list[float]:
        return [value for value in self.values if value is not None]


@dataclass(frozen=True, kw_only=True)
class SeedDifferences:
    """One measure of one variant less that of another, seed by seed; p by ``sign_flip_p``."""

    differences: list[float | None]
    n: int
    mean: float | None
    interval: Interval | None
    p: float | None


@dataclass(frozen=True)
class RoleCount:
    """How many heads of each run have a role, and how many runs have such a head."""

    kind: str
    role: str
    heads: list[int]
    runs: int


@dataclass(frozen=True)
class Group:
    """Heads that do the same, one of each run: how many have each role, and means of what they do."""

    heads: list[str]
    roles: dict[str, int]
    silhouette: float
    looks: dict[str, float]
    costs: dict[str, float]
    carries: dict[str, float]


@dataclass(frozen=True)
class Distances:
    """Mean distances of matched heads, of heads of the same name, and of heads dealt out at random."""

    matched: float
    same_name: float
    dealt: float
    p: float


@dataclass(frozen=True)
class MatchedKind:
    """What heads of several seeds have in common, see ``analysis.matching``."""

    kind: str
    distance: Distances
    groups: list[Group]


@dataclass(frozen=True)
class Share:
    share: float
    interval: Interval


@dataclass(frozen=True)
class VarianceParts:
    """What two crossed factors explain of a variance, see ``analysis.variance``."""

    rows: Share
    columns: Share
    both: Share
    seeds: Share


def bootstrap_interval(values: Sequence[float], *, resamples: int = RESAMPLES) -> Interval | None:
    """95% interval of the mean by the bootstrap, bias-corrected and accelerated (BCa; Efron, 1987).

    With the quantiles Q of the means of resampled values, Phi the normal distribution, z0 the bias and a
    the acceleration, its ends are Q(Phi(z0 + (z0 + z) / (1 - a (z0 + z)))) for z = -1.96 and 1.96. The same
    values in any order give the same interval; fewer than two values, or one that is not finite, ``None``.
    Where BCa is undefined, the ends are plain quantiles; they stay within the range of the values.
    """
    if not _enough(values):
        return None
    import numpy as np
    from scipy.stats import bootstrap  # here: it takes half a second to import

    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    if low == high:
        return (low, high)
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of nan, for which there is the second method
            found = bootstrap((ordered,), np.mean, n_resamples=resamples, method=method, rng=0)
        ends = found.confidence_interval
        if isfinite(ends.low) and isfinite(ends.high):
            break
    return (min(max(low, float(ends.low)), high), min(max(low, float(ends.high)), high))


def sign_flip_p(differences: Sequence[float]) -> float | None:
    """Two-sided p of "the mean is 0": Fisher's (1935) paired permutation test; Good (2005).

    Were there no effect, each difference might as well have had the other sign. p is the share of all 2^n
    patterns of signs s with |sum s_i d_i| >= |sum d_i|. From 17 differences on it is (1 + hits) / 10,000
    of 9,999 random patterns, never 0 (Phipson and Smyth, 2010). ``None`` as for ``bootstrap_interval``.
    """
    if not _enough(differences):
        return None
    from scipy.stats import permutation_test  # here: it takes half a second to import

    found = permutation_test(
        (sorted(differences, key=abs),),
        _size,
        permutation_type="samples",
        n_resamples=2 ** len(differences) if len(differences) <= EXACT else RESAMPLES,
        alternative="greater",
        vectorized=True,
        rng=0,
    )
    return float(found.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values of one family, adjusted step by step (Holm, 1979), in the order given.

    The i-th smallest of m becomes max over j <= i of min(1, (m - j + 1) p_j), which bounds the chance of
    even one false discovery whatever the dependence between the tests.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    steps = (min(1.0, (len(order) - rank) * p_values[index]) for rank, index in enumerate(order))
    adjusted = dict(zip(order, accumulate(steps, max), strict=True))
    return [adjusted[index] for index in range(len(order))]


def describe_seeds(values: Values) -> SeedValues:
    """Mean and interval over seeds. A number that is not finite counts as none."""
    kept = [_finite(value) for value in values]
    known = [value for value in kept if value is not None]
    return SeedValues(values=kept, **_summary(known), anecdotal=len(known) == 1)


def compare_seeds(values: Values, baseline_values: Values) -> SeedDifferences:
    """The differences to a baseline, seed by seed, where both have a value."""
    pairs = [(_finite(a), _finite(b)) for a, b in zip(values, baseline_values, strict=True)]
    differences = [None if a is None or b is None else a - b for a, b in pairs]
    known = [difference for difference in differences if difference is not None]
    return SeedDifferences(differences=differences, **_summary(known), p=sign_flip_p(known))


def _summary(known: list[float]) -> dict[str, Any]:
    return {
        "n": len(known),
        "mean": mean(known) if known else None,  # exact: the mean of equal values is that value
        "interval": bootstrap_interval(known),
    }


def _finite(value: float | int | None) -> float | None:
    return float(value) if value is not None and isfinite(value) else None


def _enough(values: Sequence[float]) -> bool:
    return len(values) >= 2 and all(isfinite(value) for value in values)


def _size(samples: Any, axis: int) -> Any:
    """How far all go together, of how far they go: the same for sums that are equal but for rounding."""
    whole = abs(samples).sum(axis=axis)
    return (abs(samples.sum(axis=axis)) / (whole + (whole == 0))).round(_DIGITS)
