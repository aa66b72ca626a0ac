"""Inputs that are nearly right: seeds with a few hostile edits, drawn from a generator of numbers.

Hypothesis would draw them at a thousandth of a second each, which is most of what a reader takes; nothing
here needs it, since what is found is kept as it is.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

Inputs = Callable[[Random], bytes]
"""Draws an input."""

TOKENS = (
    *(b"", b"\0", b"\xff\xfe", b"\xc3", b"\r", b"\n", b"\x1b[31m", b"[" * 2000, b'{"a":' * 300),
    *("٣".encode(), "\u202e".encode(), "\u00a0".encode(), "²".encode(), "\ud7ff".encode(), "𝟘".encode()),
    *(b"0" * 3000, b"9" * 5000, b"-1", b"1e999", b"NaN", b"Infinity", b"null", b"true", b"{}", b"[]"),
    *(b"../../x", b"$x^$", b"<script>", b"%00", b"&a *a", b"1:1:1", b"\\", b'"', b"'", b",", b"x" * 5000),
)
"""What readers have stumbled over, here or elsewhere."""
NUMBERS = (
    *(0, -1, 1, 2, 1.5, -0.0, 2**31, 2**63 - 1, 2**63, -(2**64), 10**400),
    *(1e308, float("nan"), float("inf")),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "x", "\x1b[31m", "$x^$", "a" * 5000, "\ud800", [], {}, [[]], [None], {"": {}}),
    *NUMBERS,
)


def damaged(seeds: Sequence[bytes]) -> Inputs:
    """A seed, or the joint of two, after none to four edits of bytes; or any bytes."""

    def draw(chance: Random) -> bytes:
        if chance.random() < ANY:
            return chance.randbytes(chance.randrange(65))
        content = chance.choice(seeds)
        for _ in range(chance.randrange(5)):
            content = _edited(content, chance, seeds)
        return content

    return draw


def damaged_text(seeds: Sequence[str]) -> Inputs:
    """UTF-8 of a text after such edits, or of any signs."""
    nearly = damaged([each.encode() for each in seeds])

    def draw(chance: Random) -> bytes:
        if chance.random() < ANY:
            points = (chance.choice((0x80, 0x800, 0xD800, 0x110000)) for _ in range(chance.randrange(41)))
            return "".join(chr(chance.randrange(top)) for top in points).encode(errors="replace")
        return nearly(chance).decode(errors="replace").encode()

    return draw


def damaged_json(seeds: Sequence[Any]) -> Inputs:
    """The JSON of a seed with values replaced, left out, repeated or nested, or with damaged bytes."""
    nearly = damaged([as_json(each) for each in seeds])

    def draw(chance: Random) -> bytes:
        if chance.random() < BYTES:
            return nearly(chance)
        value = chance.choice(seeds)
        for _ in range(chance.randint(1, 3)):
            value = _changed(value, chance)
        return as_json(value)

    return draw


def lines(seeds: Sequence[Any]) -> Inputs:
    """Up to four lines of damaged JSON."""
    line = damaged_json(seeds)
    return lambda chance: b"".join(line(chance) + b"\n" for _ in range(chance.randrange(5)))


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


ANY, BYTES = 0.1, 0.3
"""How often an input is any bytes, and how often bytes of JSON are damaged rather than its values."""
_EDITS = ("insert", "replace", "delete", "repeat", "cut", "zero", "flip", "join")


def _edited(content: bytes, chance: Random, seeds: Sequence[bytes]) -> bytes:
    start = chance.randrange(len(content) + 1)
    end = min(len(content), start + 1 + int(chance.random() ** 3 * 64))
    match chance.choice(_EDITS):
        case "insert":
            return content[:start] + chance.choice(TOKENS) + content[start:]
        case "replace":
            return content[:start] + chance.choice(TOKENS) + content[end:]
        case "delete":
            return content[:start] + content[end:]
        case "repeat":
            return content[:start] + content[start:end] * chance.randint(2, 41) + content[end:]
        case "cut":
            return content[:start]
        case "zero":
            return content[:start] + bytes(end - start) + content[end:]
        case "flip":
            flipped = bytes(each ^ 1 << chance.randrange(8) for each in content[start : start + 1])
            return content[:start] + flipped + content[start + 1 :]
        case _:
            other = chance.choice(seeds)
            return content[:start] + other[chance.randrange(len(other) + 1) :]


Change = Callable[[Any, Any], Any]


def _nested(value: Any, _other: Any) -> Any:
    for _ in range(150):
        value = [value]
    return value


CHANGES: tuple[Change | None, ...] = (
    *(lambda _value, other: other,) * 4,
    lambda value, other: [value, other],
    lambda value, other: {"kind": other, "extra": value},
    lambda value, other: value * 3 if isinstance(value, list | str) else other,
    lambda value, other: value[:-1] if isinstance(value, list | str) else other,
    lambda value, other: {**value, "extra": other} if isinstance(value, dict) else -1,
    lambda value, other: -value if isinstance(value, int | float) else other,
    lambda value, other: value + 0.5 if isinstance(value, int) and abs(value) < 1e9 else other,
    _nested,
    None,
    None,
)
"""What may become of a value, beside another one; None leaves it out."""


def _changed(value: Any, chance: Random) -> Any:
    """A copy of ``value`` with a change somewhere; what did not change may be shared with it."""
    path, other = chance.choice(list(_places(value, ()))), deepcopy(chance.choice(VALUES))
    return _replaced(value, path, chance.choice(CHANGES), other)


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*path, key)) if len(path) < 60 else ()


def _replaced(value: Any, path: tuple[Any, ...], change: Change | None, other: Any) -> Any:
    if not path:
        return other if change is None else change(value, other)
    key, *rest = path
    holder = value.copy()
    if change is None and not rest:
        del holder[key]
    else:
        holder[key] = _replaced(value[key], tuple(rest), change, other)
    return holder
