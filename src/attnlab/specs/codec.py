"""Frozen dataclasses as JSON and back: the one codec, for specs and for results.

A field is a plain value, also of several plain types, a literal, another dataclass, a union of
dataclasses with a ``kind``, one of these or None, or a list, tuple or dict (with strings as keys) of them.
``Any`` is taken as it is.

A choice between variants can be one word: ``rotary`` or, with its settings, ``rotary:base=500``. Flags,
sweep files and tables write variants this way; in a run folder they are JSON.
"""

import dataclasses
import re
import types
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union

from attnlab.errors import ECHOED, SpecError, brief, nearest, shortened
from attnlab.specs.rules import require

T = TypeVar("T")
_WHOLE = re.compile(r"[+-]?[0-9]+")


def later(default: Any) -> Any:
    """A field that older specs do not have: it is not written while it has its default.

    So a spec that does not use it has the same JSON, and the same hash, as before there was the field.
    """
    return dataclasses.field(default=default, metadata={"later": True})


def unwritten(default: Any = dataclasses.MISSING) -> Any:
    """A field that is in no JSON, such as the tensors that a result was made from."""
    return dataclasses.field(default=default, repr=False, compare=False, metadata={"unwritten": True})


def to_json(value: Any) -> Any:
    """A spec, a result, or any part of one, as plain JSON values."""
    if isinstance(value, tuple | list):
        return [to_json(each) for each in value]
    if isinstance(value, dict):
        return {key: to_json(each) for key, each in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    plain = {
        key_of(f): to_json(getattr(value, f.name))
        for f in dataclasses.fields(value)
        if not f.metadata.get("unwritten")
        and not (f.metadata.get("later") and getattr(value, f.name) == f.default)
    }
    kind = getattr(type(value), "kind", None)
    return plain if kind is None else {"kind": kind, **plain}


def key_of(field: "dataclasses.Field[Any]") -> str:
    """The key of a field; one that Python keeps for itself has a field with an underscore: ``class_``."""
    return field.name.removesuffix("_")


def from_json(cls: type[T], data: Any, path: str = "spec", *, extra: bool = False) -> T:
    """Build ``cls`` from JSON values; a wrong type, or an unknown key unless ``extra`` ones are left out,
    is a ``SpecError``.
    """
    result: T = _Reader(extra).read(cls, data, path)
    return result


def check_whole(data: Any, path: str = "spec") -> None:
    """Refuse JSON values with a whole number that could not be read again."""
    if isinstance(data, dict | list):
        for key, inner in data.items() if isinstance(data, dict) else enumerate(data):
            check_whole(inner, f"{path}.{key}" if isinstance(data, dict) else f"{path}[{key}]")
    elif isinstance(data, int):
        require(abs(data) < 2**63, path, data, "a whole number below 2^63 in size")


def variants(annotation: Any) -> Mapping[str, type]:
    """The classes of a union by their ``kind``; empty if it is not such a union.

    A closed union lists its classes. An open one is a base class with ``known_kinds``.
    """
    if hasattr(annotation, "known_kinds"):
        return annotation.known_kinds()
    is_union = typing.get_origin(annotation) in (Union, types.UnionType)
    members: Iterable[Any] = typing.get_args(annotation) if is_union else (annotation,)
    return {vars(m)["kind"]: m for m in members if isinstance(m, type) and "kind" in vars(m)}


@dataclasses.dataclass(frozen=True)
class _Reader:
    """``extra``: keys that a dataclass does not have are left out."""

    extra: bool

    def read(self, annotation: Any, data: Any, path: str) -> Any:
        if annotation is Any:
            return data
        origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (Union, types.UnionType) and type(None) in inner:
            if data is None:
                return None
            annotation = Union[tuple(each for each in inner if each is not type(None))]  # noqa: UP007
            origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
        kinds = variants(annotation)
        if kinds:
            return self._variant(kinds, data, path)
        if dataclasses.is_dataclass(annotation):
            require(isinstance(data, dict), path, data, "an object")
            return self._dataclass(annotation, data, path)
        if origin is Literal:
            require(data in inner, path, data, " or ".join(repr(o) for o in inner))
            return data
        if origin in (list, tuple, dict):
            return self._several(origin, inner, data, path)
        if inner:  # a union of plain types
            rule = "of type " + " or ".join(each.__name__ for each in inner)
            require(type(data) in inner, path, data, rule)
            return data
        if annotation is float and type(data) is int:
            require(abs(data) < 2**53, path, data, "a number that is not so large")
            return float(data)
        require(type(data) is annotation, path, data, f"of type {annotation.__name__}")
        if annotation is int:
            check_whole(data, path)
        return data

    def _several(self, origin: type, inner: tuple[Any, ...], data: Any, path: str) -> Any:
        if origin is dict:
            require(isinstance(data, dict), path, data, "an object")
            names = {key: f"{path}.{shortened(key, ECHOED)}" for key in data}
            return {key: self.read(inner[1], each, names[key]) for key, each in data.items()}
        what = "a list of whole numbers" if inner[0] is int else "a list"
        require(isinstance(data, list | tuple), path, data, what)
        fixed = origin is tuple and inner[-1] is not Ellipsis
        if fixed:
            require(len(data) == len(inner), path, data, f"a list of {len(inner)}")
        each = inner if fixed else [inner[0]] * len(data)
        return origin(
            self.read(a, d, f"{path}[{n}]") for n, (a, d) in enumerate(zip(each, data, strict=True))
        )

    def _variant(self, kinds: Mapping[str, type], data: Any, path: str) -> Any:
        require(isinstance(data, dict) and "kind" in data, path, data, "an object with a 'kind'")
        kind = data["kind"]
        if not isinstance(kind, str) or kind not in kinds:
            raise SpecError(f"{path}.kind is {brief(kind)}, which is unknown{nearest(str(kind), kinds)}")
        rest = {key: value for key, value in data.items() if key != "kind"}
        return self._dataclass(kinds[kind], rest, path)

    def _dataclass(self, cls: Any, data: dict[str, Any], path: str) -> Any:
        hints = type_hints(cls)
        known = {key_of(f): f.name for f in dataclasses.fields(cls) if f.init}
        values = {}
        for key, value in data.items():
            if key in known:
                values[known[key]] = self.read(hints[known[key]], value, f"{path}.{key}")
            elif not self.extra:
                raise SpecError(f"unknown key {path}.{shortened(key, ECHOED)}{nearest(key, known)}")
        for field in dataclasses.fields(cls):
            bare = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if bare and field.init and field.name not in values:
                raise SpecError(f"{path} has no {brief(key_of(field))}, which it needs")
        return cls(**values)


@cache
def type_hints(cls: type) -> dict[str, Any]:
    """Asked for once a class, since it takes longer than reading what has them."""
    return typing.get_type_hints(cls)


def read_variant(union: Any, word: str) -> Any:
    """``rotary:base=500`` as a value of ``union``."""
    data = word_as_json(union, word)
    kind = data["kind"]
    return from_json(variants(union)[kind], data, kind)


def write_variant(value: Any) -> str:
    """The word that ``read_variant`` reads as ``value``."""
    data = to_json(value)
    kind = data.pop("kind")
    settings = ",".join(f"{key}={setting}" for key, setting in data.items())
    return f"{kind}:{settings}" if settings else str(kind)


def word_as_json(union: Any, word: str) -> dict[str, Any]:
    """The JSON that ``word`` stands for; whether it makes a valid value is for ``from_json`` to say."""
    kind, _, settings = word.partition(":")
    kinds = variants(union)
    if kind not in kinds:
        raise SpecError(f"unknown choice {brief(kind)}{nearest(kind, kinds)}")
    data: dict[str, Any] = {"kind": kind}
    hints = type_hints(kinds[kind])
    for setting in filter(None, settings.split(",")):
        key, equals, text = setting.partition("=")
        if not equals:
            raise SpecError(f"{brief(word)} is not of the form kind:key=value,key=value")
        if typing.get_origin(hints.get(key)) is Literal:
            data[key] = text
            continue
        try:
            data[key] = int(text) if _WHOLE.fullmatch(text) else float(text.encode("ascii"))
        except ValueError as error:
            raise SpecError(
                f"{shortened(key, ECHOED)} in {brief(word)} is {brief(text)}, but it must be a number"
            ) from error
    return data
