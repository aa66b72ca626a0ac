"""Specs as JSON and back, for any frozen dataclass of plain values, literals and closed unions."""

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union

from attnlab.errors import SpecError, nearest
from attnlab.spec.rules import require

T = TypeVar("T")


def later(default: Any) -> Any:
    """A field that older specs do not have: it is not written while it has its default.

    So a spec that does not use it has the same JSON, and the same hash, as before there was the field.
    """
    return dataclasses.field(default=default, metadata={"later": True})


def to_json(value: Any) -> Any:
    """A spec, or any part of one, as plain JSON values."""
    if isinstance(value, tuple):
        return list(value)
    if not dataclasses.is_dataclass(value):
        return value
    plain = {
        f.name: to_json(getattr(value, f.name))
        for f in dataclasses.fields(value)
        if not (f.metadata.get("later") and getattr(value, f.name) == f.default)
    }
    kind = getattr(type(value), "kind", None)
    return plain if kind is None else {"kind": kind, **plain}


def from_json(cls: type[T], data: Any, path: str = "spec") -> T:
    """Build ``cls`` from JSON values; an unknown key or a wrong type is a ``SpecError``."""
    result: T = _read(cls, data, path)
    return result


def variants(annotation: Any) -> Mapping[str, type]:
    """The classes of a union by their ``kind``; empty if it is no such union.

    A closed union lists its classes. An open one is a base class with ``known_kinds``.
    """
    if hasattr(annotation, "known_kinds"):
        return annotation.known_kinds()
    is_union = typing.get_origin(annotation) in (Union, types.UnionType)
    members: Iterable[Any] = typing.get_args(annotation) if is_union else (annotation,)
    return {vars(m)["kind"]: m for m in members if isinstance(m, type) and "kind" in vars(m)}


def _read(annotation: Any, data: Any, path: str) -> Any:
    kinds = variants(annotation)
    if kinds:
        require(isinstance(data, dict) and "kind" in data, path, data, "an object with a 'kind'")
        kind = data["kind"]
        if not isinstance(kind, str) or kind not in kinds:
            raise SpecError(f"{path}.kind is {kind!r}, which is unknown{nearest(str(kind), kinds)}")
        rest = {key: value for key, value in data.items() if key != "kind"}
        return _read_dataclass(kinds[kind], rest, path)
    if dataclasses.is_dataclass(annotation):
        require(isinstance(data, dict), path, data, "an object")
        return _read_dataclass(annotation, data, path)
    if typing.get_origin(annotation) is Literal:
        options = typing.get_args(annotation)
        require(data in options, path, data, " or ".join(repr(o) for o in options))
        return data
    if annotation == tuple[int, ...]:
        require(isinstance(data, list | tuple), path, data, "a list of whole numbers")
        return tuple(_read(int, each, f"{path}[{place}]") for place, each in enumerate(data))
    if annotation is float and type(data) is int:
        require(abs(data) < 2**53, path, data, "a number that is not so large")
        return float(data)
    require(type(data) is annotation, path, data, f"of type {annotation.__name__}")
    return data


def _read_dataclass(cls: Any, data: dict[str, Any], path: str) -> Any:
    hints = typing.get_type_hints(cls)
    known = [f.name for f in dataclasses.fields(cls)]
    for key in data:
        if key not in known:
            raise SpecError(f"{path}.{key} is no known key{nearest(key, known)}")
    values = {key: _read(hints[key], value, f"{path}.{key}") for key, value in data.items()}
    for field in dataclasses.fields(cls):
        bare = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if bare and field.name not in values:
            raise SpecError(f"{path} has no {field.name!r}, which it needs")
    return cls(**values)
