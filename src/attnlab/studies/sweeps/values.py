"""Single values of a sweep file, and what is said about those that do not fit."""

import re
import reprlib
from collections.abc import Collection, Mapping
from typing import Any

from attnlab.errors import SpecError, nearest

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80


def brief(value: object) -> str:
    """A value as in Python, cut where it is long: a message stays a sentence."""
    return _short.repr(value)


def expect(holds: bool, key: str, value: object, rule: str) -> None:
    """``require`` for values of any size."""
    if not holds:
        raise SpecError(f"{key} is {brief(value)}, but it must be {rule}")


def check_keys(
    data: Mapping[str, Any], known: Collection[str], *, where: str = "", foreign: Collection[str] = ()
) -> None:
    """Refuse a key that is unknown, or that W&B has and attnlab lacks (``foreign``)."""
    for key in data:
        if key in foreign:
            raise SpecError(f"W&B's key {where + key!r} is not supported")
        if key not in known:
            raise SpecError(f"{where + key!r} is no key of a sweep file{nearest(key, known)}")


def mapping(key: str, value: Any) -> dict[str, Any]:
    expect(isinstance(value, dict), key, value, "an object of keys and values")
    return dict(value)


def text(key: str, value: Any) -> str:
    """A line of text."""
    fits = isinstance(value, str) and value.strip() != "" and value.isprintable()
    expect(fits, key, value, "text on one line")
    return str(value)


def number(key: str, value: Any) -> float:
    """A number, or text that reads like one: to YAML 1.1, ``1e-4`` without a dot is text."""
    read = plain(value)
    expect(type(read) in (int, float), key, value, "a number")
    expect(abs(read) < 2**53, key, value, "a number below 2^53 in size")
    return float(read)


def whole(key: str, value: Any, least: int = -(2**53)) -> int:
    read = plain(value)
    fits = type(read) is int or (type(read) is float and read.is_integer())
    rule = "a whole number" if least < 0 else f"a whole number, at least {least}"
    expect(fits and least <= read < 2**53, key, value, rule)
    return int(read)


def option(key: str, value: Any) -> Any:
    """A value for a key of the spec: a number, a word, yes or no, or a variant as an object."""
    if isinstance(value, dict) and "kind" in value:
        return {name: plain(item) for name, item in value.items()}
    fits = isinstance(value, int | float) or (isinstance(value, str) and value.isprintable())
    expect(fits, key, value, "a number, a word, or an object with a 'kind'")
    read = plain(value)
    if not isinstance(read, str | bool):
        number(key, read)
    return read


def plain(value: Any) -> Any:
    """Text that reads like a number as that number; all else as it is."""
    if not isinstance(value, str) or len(value) > 40 or not _NUMBER.fullmatch(value.strip()):
        return value
    return int(value) if value.strip().lstrip("+-").isdigit() else float(value)
