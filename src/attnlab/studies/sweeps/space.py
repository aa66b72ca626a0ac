"""What a sweep draws a value from: the distributions of Weights & Biases, as they define them.

Every distribution has

- ``quantile(u)``, the inverse of its cumulative distribution function for u in [0, 1), so that any
  source of numbers in [0, 1) can drive it;
- ``values()``, all of its values for a grid search, or None if they are infinite or too many;
- ``edge(value)``: whether a value lies at an end of what was searched, in which case the best one
  may lie outside. A range ends in its outer 5 %, on the scale it is sampled on; whole numbers and
  lists of numbers end in their smallest and largest; two values are no range;
- ``describe()``, a few words for tables.

Bounds go by W&B's names in messages: ``min``, ``max``, ``q``, ``mu``, ``sigma``. Reading distributions from
files is not here.
"""

import json
import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist
from typing import Any, Literal

from attnlab.errors import SpecError
from attnlab.specs import require

Edge = Literal["lower", "upper"]

OUTER = 0.05
"""A value within this share of a range's end lies at its edge."""
MOST_VALUES = 10_000
"""A longer list is nothing to go through one by one, nor to hold in memory."""
LARGEST = 2**53
"""Whole numbers below are exact as floats."""
SMALLEST_U = 2.0**-54
"""Half the smallest step of a generator of [0, 1): keeps the normal's quantile of 0 finite."""
EXPONENT = 700
"""e to this power, and to its negative, is still an ordinary float."""


class Distribution(ABC):
    """Without an end, and without values to go through, unless it says otherwise."""

    @abstractmethod
    def quantile(self, u: float) -> Any: ...

    @abstractmethod
    def describe(self) -> str: ...

    def values(self) -> tuple[Any, ...] | None:
        return None

    def edge(self, value: Any) -> Edge | None:
        return None


@dataclass(frozen=True, kw_only=True)
class Range(Distribution):
    """Numbers from ``low`` to ``high``."""

    low: float
    high: float

    def __post_init__(self) -> None:
        for name, bound in (("min", self.low), ("max", self.high)):
            require(abs(bound) < LARGEST, name, bound, "a finite number below 2^53 in size")
        require(self.low <= self.high, "min", self.low, f"at most max, {self.high}")


@dataclass(frozen=True, kw_only=True)
class Integers(Range):
    """W&B's ``int_uniform``: whole numbers, both ends included, equally likely."""

    low: int
    high: int

    def quantile(self, u: float) -> int:
        return min(self.low + int(u * (self.high - self.low + 1)), self.high)

    def values(self) -> tuple[int, ...] | None:
        every = range(self.low, self.high + 1)
        return tuple(every) if len(every) <= MOST_VALUES else None

    def edge(self, value: int | float) -> Edge | None:
        return end_of(value, self.low, self.high) if self.high - self.low >= 2 else None

    def describe(self) -> str:
        return f"{self.low} .. {self.high}, whole numbers"


@dataclass(frozen=True, kw_only=True)
class Uniform(Range):
    """W&B's ``uniform``."""

    def quantile(self, u: float) -> float:
        return min(self.low + u * (self.high - self.low), self.high)

    def edge(self, value: int | float) -> Edge | None:
        margin = OUTER * (self.high - self.low)
        return end_of(value, self.low + margin, self.high - margin)

    def describe(self) -> str:
        return f"{self.low:g} .. {self.high:g}"


@dataclass(frozen=True, kw_only=True)
class LogUniform(Range):
    """W&B's ``log_uniform_values``: the logarithm is uniform. Bounds are those of the value itself."""

    def __post_init__(self) -> None:
        require(self.low > 0, "min", self.low, "above 0 on a log scale")
        super().__post_init__()

    def quantile(self, u: float) -> float:
        value = math.exp(self._logs.quantile(u))
        return min(max(value, self.low), self.high)  # exp(log(low)) may fall below low by rounding

    def edge(self, value: int | float) -> Edge | None:
        # The logarithm is taken inside the range only: in steps, a value may be rounded to 0.
        return self._logs.edge(math.log(min(max(value, self.low), self.high)))

    def describe(self) -> str:
        return f"{self.low:g} .. {self.high:g}, log"

    @property
    def _logs(self) -> Uniform:
        return Uniform(low=math.log(self.low), high=math.log(self.high))


@dataclass(frozen=True, kw_only=True)
class Stepped(Distribution):
    """W&B's ``q_uniform`` and ``q_log_uniform_values``: round(X / step) * step, halves to even.

    As at W&B rounding is the last thing done, so the ends may be rounded past the bounds.
    """

    of: Uniform | LogUniform
    step: float = 1.0

    def __post_init__(self) -> None:
        require(0 < self.step < LARGEST, "q", self.step, "above 0 and below 2^53")
        size = max(abs(self.of.low), abs(self.of.high))
        require(size / self.step < LARGEST, "q", self.step, f"not so small against {size:g}")

    def quantile(self, u: float) -> int | float:
        return self._multiple(round(self.of.quantile(u) / self.step))

    def values(self) -> tuple[int | float, ...] | None:
        first, last = self._ends
        if last - first >= MOST_VALUES:
            return None
        return tuple(self._multiple(count) for count in range(first, last + 1))

    def edge(self, value: int | float) -> Edge | None:
        first, last = self._ends
        if last - first < 2:
            return None
        return end_of(value, self._multiple(first), self._multiple(last)) or self.of.edge(value)

    def describe(self) -> str:
        return f"{self.of.describe()}, in steps of {self.step:g}"

    @property
    def _ends(self) -> tuple[int, int]:
        return round(self.of.low / self.step), round(self.of.high / self.step)

    def _multiple(self, count: int) -> int | float:
        """Steps of a whole number are whole; 3 steps of 0.1 are 0.3, not 0.30000000000000004."""
        return count * int(self.step) if self.step.is_integer() else float(f"{count * self.step:.12g}")


@dataclass(frozen=True, kw_only=True)
class Normal(Distribution):
    """W&B's ``normal``: mean mu and standard deviation sigma."""

    mu: float = 0.0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        require(abs(self.mu) < LARGEST, "mu", self.mu, "a finite number below 2^53 in size")
        require(0 <= self.sigma < LARGEST, "sigma", self.sigma, "at least 0 and below 2^53")

    def quantile(self, u: float) -> float:
        return self.mu + self.sigma * NormalDist().inv_cdf(max(u, SMALLEST_U))

    def describe(self) -> str:
        return f"normal, mean {self.mu:g}, deviation {self.sigma:g}"


@dataclass(frozen=True, kw_only=True)
class LogNormal(Normal):
    """W&B's ``log_normal``: the natural logarithm has mean mu and standard deviation sigma."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # No quantile of the standard normal in use lies further out than 9.
        rule = f"such that |mu| + 9 sigma is at most {EXPONENT}, or e^X is not a finite number"
        require(abs(self.mu) + 9 * self.sigma <= EXPONENT, "mu, sigma", (self.mu, self.sigma), rule)

    def quantile(self, u: float) -> float:
        return math.exp(super().quantile(u))

    def describe(self) -> str:
        return f"e^X, X {super().describe()}"


def end_of(value: int | float, low: int | float, high: int | float) -> Edge | None:
    """Whether ``value`` is not above ``low`` or not below ``high``; if both are one, it is at neither."""
    if low >= high:
        return None
    return "lower" if value <= low else "upper" if value >= high else None


@dataclass(frozen=True, kw_only=True)
class Fixed(Distribution):
    """W&B's ``constant``: always the same value."""

    value: Any

    def quantile(self, u: float) -> Any:
        return self.value

    def values(self) -> tuple[Any, ...]:
        return (self.value,)

    def describe(self) -> str:
        return f"always {_shown(self.value)}"


@dataclass(frozen=True, kw_only=True)
class Listed(Distribution):
    """Some values, by their names."""

    options: tuple[Any, ...]

    def __post_init__(self) -> None:
        count = len(self.options)
        require(0 < count <= MOST_VALUES, "the number of values", count, f"1 to {MOST_VALUES}")
        seen = set()
        for option in self.options:
            # Python takes True for 1, which no spec does.
            name = option if _is_number(option) else json.dumps(option, sort_keys=True)
            if name in seen:
                raise SpecError(f"values names {_shown(option)} twice, but each value must be named once")
            seen.add(name)

    def values(self) -> tuple[Any, ...]:
        return self.options

    def edge(self, value: Any) -> Edge | None:
        if len(self.options) < 3 or not all(map(_is_number, self.options)):
            return None
        return end_of(value, min(self.options), max(self.options))


@dataclass(frozen=True, kw_only=True)
class Choice(Listed):
    """W&B's ``categorical``: each of some values equally likely."""

    def quantile(self, u: float) -> Any:
        return self.options[min(int(u * len(self.options)), len(self.options) - 1)]

    def describe(self) -> str:
        return "one of " + ", ".join(_shown(option) for option in self.options)


@dataclass(frozen=True, kw_only=True)
class WeightedChoice(Listed):
    """W&B's ``categorical_w_probabilities``: each of some values with a probability of its own."""

    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        count, given = len(self.options), len(self.probabilities)
        require(given == count, "the number of probabilities", given, f"{count}, one for each value")
        least, total = min(self.probabilities), sum(self.probabilities)
        require(least >= 0, "the least of probabilities", least, "at least 0")
        require(abs(total - 1) < 1e-6, "the sum of probabilities", total, "1")

    def quantile(self, u: float) -> Any:
        place = bisect_right(list(accumulate(self.probabilities)), u)
        last = max(place for place, probability in enumerate(self.probabilities) if probability > 0)
        return self.options[min(place, last)]  # the sum may fall short of 1 by rounding

    def describe(self) -> str:
        pairs = zip(self.options, self.probabilities, strict=True)
        return "one of " + ", ".join(f"{_shown(option)} ({share:.0%})" for option, share in pairs)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _shown(value: Any) -> str:
    if isinstance(value, dict) and "kind" in value:
        settings = ",".join(f"{key}={_shown(item)}" for key, item in value.items() if key != "kind")
        return f"{value['kind']}:{settings}" if settings else str(value["kind"])
    return f"{value:g}" if isinstance(value, float) else str(value)
