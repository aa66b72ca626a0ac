"""The one way in which a spec refuses a value, and rules that are written into the types of fields:

    class Sinusoidal(Checked, path="model.positions.", kind="sinusoidal"):
        base: AboveOne = 10_000.0

Such rules are checked when a value is made, before those that concern several fields.
"""

import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from attnlab.errors import SpecError, brief


def require(holds: bool, key: str, value: object, rule: str) -> None:
    """Raise a ``SpecError`` naming ``key``, its ``value`` and the ``rule`` unless it ``holds``."""
    if not holds:
        raise SpecError(f"{key} is {brief(value)}, but it must be {rule}")


@dataclass(frozen=True)
class Rule:
    """What a value must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def up_to(most: float) -> Rule:
    return Rule(f"from 0 to {most}", lambda value: 0 <= value <= most)


Natural = Annotated[int, Rule("at least 0", lambda value: value >= 0)]
Positive = Annotated[int, Rule("at least 1", lambda value: value >= 1)]
NotNegative = Annotated[float, Rule("at least 0", lambda value: value >= 0)]
AboveOne = Annotated[float, Rule("above 1", lambda value: value > 1)]
Finite = Annotated[float, Rule("at least 0 and finite", lambda value: 0 <= value < math.inf)]
BelowOne = Annotated[float, Rule("at least 0 and below 1", lambda value: 0 <= value < 1)]
Inside = Annotated[float, Rule("above 0 and below 1", lambda value: 0 < value < 1)]
Share = Annotated[float, up_to(1)]


class Checked:
    """A part of a spec with rules in the types of its fields; ``path`` is what their names follow, ``kind``
    what a variant goes by."""

    kind: ClassVar[str]
    _path: ClassVar[str] = ""

    def __init_subclass__(cls, path: str = "", kind: str = "") -> None:
        super().__init_subclass__()
        cls._path = path or cls._path
        if kind:
            cls.kind = kind

    def __post_init__(self) -> None:
        own: Any = type(self)
        for name, rule in _rules(own):
            value = getattr(self, name)
            require(rule.holds(value), self._path + name, value, rule.words)


@cache
def _rules(cls: type) -> list[tuple[str, Rule]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    given = [(name, getattr(hint, "__metadata__", ())) for name, hint in hints.items()]
    return [(name, rule) for name, rules in given for rule in rules if isinstance(rule, Rule)]
