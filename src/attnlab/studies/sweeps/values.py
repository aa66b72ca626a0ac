"""A YAML file as plain values, single values of a sweep file, and what is said about those that do not fit.

JSON is YAML, so it is read as well. YAML has traps that are refused rather than fallen into: a key
given twice (the last would win), dates, NaN, and a few aliases that stand for millions of values.
"""

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from attnlab.errors import ECHOED, SpecError, brief, nearest, shortened
from attnlab.reading import read_text
from attnlab.specs import require
from attnlab.studies.sweeps.space import LARGEST

T = TypeVar("T")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def check_keys(
    data: Mapping[str, Any], known: Collection[str], *, where: str = "", foreign: Collection[str] = ()
) -> None:
    """Refuse a key that is unknown, or that W&B has and attnlab lacks (``foreign``)."""
    for key in data:
        if key in foreign:
            raise SpecError(f"W&B's key {brief(where + key)} is not supported")
        if key not in known:
            raise SpecError(f"{brief(where + key)} is not a key of a sweep file{nearest(key, known)}")


def mapping(key: str, value: Any) -> dict[str, Any]:
    require(isinstance(value, dict), key, value, "an object of keys and values")
    return dict(value)


def text(key: str, value: Any) -> str:
    fits = isinstance(value, str) and value.strip() != "" and value.isprintable()
    require(fits, key, value, "text on one line")
    return str(value)


def number(key: str, value: Any) -> float:
    """A number, or text that reads like one: to YAML 1.1, ``1e-4`` without a dot is text."""
    read = plain(value)
    require(type(read) in (int, float), key, value, "a number")
    require(abs(read) < 2**53, key, value, "a number below 2^53 in size")
    return float(read)


def whole(key: str, value: Any, least: int = -(2**53)) -> int:
    read = plain(value)
    fits = type(read) is int or (type(read) is float and read.is_integer())
    rule = "a whole number" if least < 0 else f"a whole number, at least {least}"
    require(fits and least <= read < 2**53, key, value, rule)
    return int(read)


def one_of(key: str, value: Any, choices: tuple[T, ...]) -> T:
    require(value in choices, key, value, " or ".join(map(repr, choices)))
    return choices[choices.index(value)]


def several(read: Callable[[str, Any], T], rule: str, key: str, values: Any) -> tuple[T, ...]:
    """All of a list, read one by one."""
    require(isinstance(values, list), key, values, rule)
    return tuple(read(f"{key}[{place}]", value) for place, value in enumerate(values))


def option(key: str, value: Any) -> Any:
    """A value for a key of the spec: a number, a word, yes or no, or a variant as an object."""
    if isinstance(value, dict) and "kind" in value:
        return {name: plain(item) for name, item in value.items()}
    fits = isinstance(value, int | float) or (isinstance(value, str) and value.isprintable())
    require(fits, key, value, "a number, a word, or an object with a 'kind'")
    read = plain(value)
    if not isinstance(read, str | bool):
        number(key, read)
    return read


def plain(value: Any) -> Any:
    """Text that reads like a number as that number; all else as it is."""
    if not isinstance(value, str) or len(value) > 40 or not _NUMBER.fullmatch(value.strip()):
        return value
    return int(value) if value.strip().lstrip("+-").isdigit() else float(value)


MOST_BYTES = 1_000_000
MOST_NODES = 20_000
DEEPEST = 40
LONGEST_KEY = 100
LONGEST_NUMBER = 64
"""Characters of a number; YAML 1.1 also reads 1:1:1 as one, to the base of 60."""


def read_yaml(path: Path) -> dict[str, Any]:
    try:
        data = _parse(read_text(path, MOST_BYTES))
    except FileNotFoundError as error:
        raise SpecError("there is no such file") from error
    except (OSError, ValueError) as error:  # a folder, no permission, no UTF-8
        reason = getattr(error, "strerror", None) or error
        raise SpecError(f"the file cannot be read as text: {reason}") from error
    if data is None:
        raise SpecError("the file is empty")
    if not isinstance(data, dict):
        raise SpecError(f"the file holds a {_sort(data)} at its top, but it must hold keys and values")
    _check_plain("", data)
    return data


def _parse(text: str) -> Any:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _measure(node, {})
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SpecError(
            f"the file is not YAML: line {line}: {shortened(str(error.problem), ECHOED)}"
        ) from error
    except RecursionError as error:
        raise SpecError(f"the file nests more than {DEEPEST} levels deep") from error
    except SpecError:
        raise
    except Exception as error:
        # PyYAML lets through whatever int(), datetime() and its own lookups raise for odd values.
        reason = shortened(" ".join(str(error).split()), ECHOED)
        raise SpecError(f"the file is not YAML: {reason or type(error).__name__}") from error


class _Loader(yaml.SafeLoader):
    """Stops as soon as there are too many values or a number is too long, however much is still to come."""

    _count = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._count += 1
        if self._count > MOST_NODES:
            raise SpecError(f"the file stands for more than {MOST_NODES:,} values")
        return super().compose_node(parent, index)

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if node.tag.endswith((":int", ":float")) and len(node.value) > LONGEST_NUMBER:
            line, count = node.start_mark.line + 1, len(node.value)
            raise SpecError(
                f"line {line} holds a number of {count:,} characters; at most {LONGEST_NUMBER} are read"
            )
        return node


def _measure(node: yaml.Node, known: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """How many values ``node`` stands for with every alias written out, and how deep they nest."""
    if id(node) not in known:
        known[id(node)] = None
        measured = [_measure(child, known) for child in _children(node)]
        size, depth = 1 + sum(s for s, _ in measured), 1 + max((d for _, d in measured), default=0)
        if size > MOST_NODES:
            raise SpecError(f"the file stands for more than {MOST_NODES:,} values")
        if depth > DEEPEST:
            raise SpecError(f"the file nests more than {DEEPEST} levels deep")
        known[id(node)] = size, depth
    found = known[id(node)]
    if found is None:
        raise SpecError(f"line {node.start_mark.line + 1} holds a value that contains itself")
    return found


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if not isinstance(node, yaml.MappingNode):
        return []
    seen = set()
    for key, _ in node.value:
        name = key.tag, str(key.value)
        if name in seen:
            raise SpecError(f"line {key.start_mark.line + 1} gives {brief(key.value)} again")
        seen.add(name)
    return [child for pair in node.value for child in pair]


def _check_plain(path: str, value: Any) -> None:
    match value:
        case dict():
            for key, item in value.items():
                # Keys go into messages and tables as they are; ``on`` and ``1`` without quotes are no text.
                fits = isinstance(key, str) and key.isprintable() and len(key) <= LONGEST_KEY
                rule = (
                    f"text of at most {LONGEST_KEY} printable characters; quotes make text of what is none"
                )
                require(fits, f"a key of {path}" if path else "a key", key, rule)
                _check_plain(f"{path}.{key}" if path else key, item)
        case list():
            for place, item in enumerate(value):
                _check_plain(f"{path}[{place}]", item)
        case bool() | str() | None:
            pass
        case int() | float() if abs(value) < LARGEST:
            pass
        case int() | float():
            raise SpecError(f"{path} is {brief(value)}, but it must be a finite number below 2^53 in size")
        case _:
            raise SpecError(f"{path} is a {_sort(value)}; put it in quotes if it is meant as text")


def _sort(value: Any) -> str:
    """What people call a value of this type."""
    names = {list: "list", str: "text", bool: "yes or no", int: "number", float: "number"}
    return names.get(type(value), type(value).__name__)
