"""A YAML file as plain values: text, numbers, true and false, lists, and objects with text as keys.

JSON is YAML, so it is read as well. YAML has traps that are refused rather than fallen into: a key
given twice (the last would win), dates, NaN, and a few aliases that stand for millions of values.
"""

import math
from pathlib import Path
from typing import Any

import yaml

from attnlab.errors import SpecError
from attnlab.studies.sweeps.ranges import LARGEST
from attnlab.studies.sweeps.values import brief

MOST_BYTES = 1_000_000
MOST_NODES = 20_000
DEEPEST = 40
LONGEST_KEY = 100


def read_yaml(path: Path) -> dict[str, Any]:
    """The object that the file holds."""
    data = _parse(_read_text(path))
    if data is None:
        raise SpecError("the file is empty")
    if not isinstance(data, dict):
        raise SpecError(f"the file holds a {_sort(data)} at its top, but it must hold keys and values")
    _check_plain("", data)
    return data


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise SpecError(f"the file has more than {MOST_BYTES:,} bytes")
        return raw.decode()
    except FileNotFoundError as error:
        raise SpecError("there is no such file") from error
    except (OSError, ValueError) as error:  # a folder, no permission, no UTF-8
        reason = getattr(error, "strerror", None) or error
        raise SpecError(f"the file cannot be read as text: {reason}") from error


def _parse(text: str) -> Any:
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _measure(node, {})
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SpecError(f"the file is not YAML: line {line}: {error.problem}") from error
    except RecursionError as error:
        raise SpecError(f"the file nests more than {DEEPEST} levels deep") from error
    except SpecError:
        raise
    except Exception as error:
        # PyYAML lets through whatever int(), datetime() and its own lookups raise for odd values.
        reason = " ".join(str(error).split())
        raise SpecError(f"the file is not YAML: {reason or type(error).__name__}") from error


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
            raise SpecError(f"line {key.start_mark.line + 1} gives {key.value!r} again")
        seen.add(name)
    return [child for pair in node.value for child in pair]


def _check_plain(path: str, value: Any) -> None:
    match value:
        case dict():
            for key, item in value.items():
                _check_key(path, key)
                _check_plain(f"{path}.{key}" if path else key, item)
        case list():
            for place, item in enumerate(value):
                _check_plain(f"{path}[{place}]", item)
        case bool() | str() | None:
            pass
        case int() | float() if math.isfinite(value) and abs(value) < LARGEST:
            pass
        case int() | float():
            raise SpecError(f"{path} is {value}, but it must be a finite number below 2^53 in size")
        case _:
            raise SpecError(f"{path} is a {_sort(value)}; put it in quotes if it is meant as text")


def _check_key(path: str, key: Any) -> None:
    """Keys go into messages and tables as they are; ``on`` and ``1`` without quotes are no text to YAML."""
    if not isinstance(key, str) or not key.isprintable() or len(key) > LONGEST_KEY:
        where = f" of {path}" if path else ""
        rule = f"text of at most {LONGEST_KEY} printable characters; quotes make text of what is none"
        raise SpecError(f"a key{where} is {brief(key)}, but it must be {rule}")


def _sort(value: Any) -> str:
    """What people call a value of this type."""
    names = {list: "list", str: "text", bool: "yes or no", int: "number", float: "number"}
    return names.get(type(value), type(value).__name__)
