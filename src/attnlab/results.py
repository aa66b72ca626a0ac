"""Results: what analyses return. Each is a frozen dataclass; one codec makes JSON of it and back.

    @dataclass(frozen=True, kw_only=True)
    class Evaluation(Result):
        split: Split
        examples: int
        exact_match: float
        exact_match_interval: Interval
        by_stratum: list[Stratum]

Its fields are the keys of ``--json``, in their order. A field that came later has a default; one that is
written only when there is something to say is ``later(None)``.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

from attnlab.spec.codec import from_json, to_json
from attnlab.spec.task import Task

R = TypeVar("R", bound="Result")

Interval = tuple[float, float]
"""The ends of a 95% interval."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The base of all results."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain: dict[str, Any] = to_json(self)
        return plain

    @classmethod
    def from_json(cls: type[R], data: Any) -> R:
        """Read what ``to_json`` gave; keys that this class does not have are left out."""
        return from_json(cls, data, cls.__name__, extra=True)


def own_class(task: Task, kind: type[R]) -> type[R]:
    """The subclass of ``kind`` that ``task`` has of its own, or ``kind``."""
    return next((each for each in task.results() if issubclass(each, kind)), kind)


@dataclass(frozen=True)
class Estimate:
    """A mean over examples with its interval; None where a single example has none."""

    value: float
    interval: Interval | None

    @property
    def ends(self) -> Interval:
        """Its interval; the value twice where there is none."""
        return self.interval or (self.value, self.value)

    def surely_above(self, limit: float) -> bool:
        """Whether the whole interval lies above ``limit``."""
        return self.interval is not None and self.interval[0] > limit

    def surely_below(self, limit: float) -> bool:
        """Whether the whole interval lies below ``limit``."""
        return self.interval is not None and self.interval[1] < limit
