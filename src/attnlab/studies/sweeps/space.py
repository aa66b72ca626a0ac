"""What a sweep draws a value from: the distributions of Weights & Biases, as they define them.

Every distribution has

- ``quantile(u)``, the inverse of its cumulative distribution function for u in [0, 1), so that any
  source of numbers in [0, 1) can drive it;
- ``values()``, all of its values for a grid search, or None if they are infinite or too many;
- ``edge(value)``: whether a value lies at an end of what was searched, in which case the best one
  may lie outside. A range ends in its outer 5 %, on the scale it is sampled on; whole numbers and
  lists of numbers end in their smallest and largest; two values are no range;
- ``describe()``, a few words for tables.

Here are those of given values, in ``ranges`` those of numbers. Reading them from files is not here.
"""

import json
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from attnlab.errors import SpecError
from attnlab.spec import require
from attnlab.studies.sweeps.ranges import (
    MOST_VALUES,
    Edge,
    Integers,
    LogNormal,
    LogUniform,
    Normal,
    Stepped,
    Uniform,
    end_of,
)

__all__ = [
    "Choice",
    "Distribution",
    "Edge",
    "Fixed",
    "Integers",
    "LogNormal",
    "LogUniform",
    "Normal",
    "Stepped",
    "Uniform",
    "WeightedChoice",
]


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """W&B's ``constant``: always the same value."""

    value: Any

    def quantile(self, u: float) -> Any:
        return self.value

    def values(self) -> tuple[Any, ...]:
        return (self.value,)

    def edge(self, value: Any) -> None:
        """One value is no range."""
        return

    def describe(self) -> str:
        return f"always {_shown(self.value)}"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """W&B's ``categorical``: each of some values equally likely."""

    options: tuple[Any, ...]

    def __post_init__(self) -> None:
        _check_options(self.options)

    def quantile(self, u: float) -> Any:
        return self.options[min(int(u * len(self.options)), len(self.options) - 1)]

    def values(self) -> tuple[Any, ...]:
        return self.options

    def edge(self, value: Any) -> Edge | None:
        return _edge_of_list(self.options, value)

    def describe(self) -> str:
        return "one of " + ", ".join(_shown(option) for option in self.options)


@dataclass(frozen=True, kw_only=True)
class WeightedChoice:
    """W&B's ``categorical_w_probabilities``: each of some values with a probability of its own."""

    options: tuple[Any, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_options(self.options)
        count = len(self.options)
        given = len(self.probabilities)
        require(given == count, "the number of probabilities", given, f"{count}, one for each value")
        least = min(self.probabilities)
        require(least >= 0, "the least of probabilities", least, "at least 0")
        total = sum(self.probabilities)
        require(abs(total - 1) < 1e-6, "the sum of probabilities", total, "1")

    def quantile(self, u: float) -> Any:
        possible = [pair for pair in zip(self.options, self.probabilities, strict=True) if pair[1] > 0]
        bounds = accumulate(probability for _, probability in possible)
        reached = (option for (option, _), bound in zip(possible, bounds, strict=True) if u < bound)
        return next(reached, possible[-1][0])  # the sum may fall short of 1 by rounding

    def values(self) -> tuple[Any, ...]:
        return self.options

    def edge(self, value: Any) -> Edge | None:
        return _edge_of_list(self.options, value)

    def describe(self) -> str:
        pairs = zip(self.options, self.probabilities, strict=True)
        return "one of " + ", ".join(f"{_shown(option)} ({share:.0%})" for option, share in pairs)


Distribution = (
    Fixed | Choice | WeightedChoice | Integers | Uniform | LogUniform | Stepped | Normal | LogNormal
)


def _check_options(options: tuple[Any, ...]) -> None:
    require(0 < len(options) <= MOST_VALUES, "the number of values", len(options), f"1 to {MOST_VALUES}")
    seen = set()
    for option in options:
        # Python takes True for 1, which no spec does.
        name = option if _is_number(option) else json.dumps(option, sort_keys=True)
        if name in seen:
            raise SpecError(f"values names {_shown(option)} twice, but each value must be named once")
        seen.add(name)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _edge_of_list(options: tuple[Any, ...], value: Any) -> Edge | None:
    if len(options) < 3 or not all(map(_is_number, options)):
        return None
    return end_of(value, min(options), max(options))


def _shown(value: Any) -> str:
    if isinstance(value, dict) and "kind" in value:
        settings = ",".join(f"{key}={_shown(item)}" for key, item in value.items() if key != "kind")
        return f"{value['kind']}:{settings}" if settings else str(value["kind"])
    return f"{value:g}" if isinstance(value, float) else str(value)
