"""Inputs that are nearly right: seeds with a few hostile edits, as strategies of hypothesis."""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

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


def damaged(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """A seed, or the joint of two, after one to four edits of bytes; or any bytes."""
    edits = st.lists(st.tuples(_EDIT, _PLACE, _PLACE, st.sampled_from(TOKENS)), max_size=4)
    nearly = st.builds(_edited, st.sampled_from(seeds), edits, st.sampled_from(seeds))
    return nearly | st.binary(max_size=64)


def damaged_text(seeds: Sequence[str]) -> st.SearchStrategy[str]:
    """Text after such edits, or any."""
    found = damaged([each.encode() for each in seeds])
    return found.map(lambda each: each.decode(errors="replace")) | st.text(max_size=40)


def damaged_json(seeds: Sequence[Any]) -> st.SearchStrategy[bytes]:
    """The JSON of a seed with values replaced, left out, repeated or nested, or with damaged bytes."""
    change = st.tuples(_PLACE, st.sampled_from(CHANGES), st.sampled_from(VALUES))
    several = st.lists(change, min_size=1, max_size=3)
    found = st.builds(lambda seed, many: as_json(changed(seed, many)), st.sampled_from(seeds), several)
    return found | damaged([as_json(each) for each in seeds])


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


_PLACE = st.floats(0, 1, exclude_max=True, width=32)
"""A place as a share of the whole, so that it fits any seed."""
_EDIT = st.sampled_from(("insert", "replace", "delete", "repeat", "cut", "zero", "flip", "join"))


def _edited(seed: bytes, edits: Sequence[tuple[str, float, float, bytes]], other: bytes) -> bytes:
    for kind, first, second, token in edits:
        start = int(first * (len(seed) + 1))
        end = min(len(seed), start + 1 + int(second**3 * 64))
        match kind:
            case "insert":
                seed = seed[:start] + token + seed[start:]
            case "replace":
                seed = seed[:start] + token + seed[end:]
            case "delete":
                seed = seed[:start] + seed[end:]
            case "repeat":
                seed = seed[:start] + seed[start:end] * (1 + int(second * 40)) + seed[end:]
            case "cut":
                seed = seed[:start]
            case "zero":
                seed = seed[:start] + bytes(end - start) + seed[end:]
            case "flip":
                flipped = [each ^ (1 << int(second * 8)) for each in seed[start : start + 1]]
                seed = seed[:start] + bytes(flipped) + seed[start + 1 :]
            case "join":
                seed = seed[:start] + other[int(second * len(other)) :]
    return seed


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


def changed(value: Any, changes: Sequence[tuple[float, Change | None, Any]]) -> Any:
    value = json.loads(json.dumps(value))
    for where, change, other in changes:
        places = list(_places(value, ()))
        value = _replaced(value, places[int(where * len(places))], change, deepcopy(other))
    return value


def _places(value: Any, path: tuple[Any, ...]) -> Any:
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*path, key)) if len(path) < 60 else ()


def _replaced(value: Any, path: tuple[Any, ...], change: Change | None, other: Any) -> Any:
    if not path:
        return other if change is None else change(value, other)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    if change is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = change(holder[path[-1]], other)
    return value
