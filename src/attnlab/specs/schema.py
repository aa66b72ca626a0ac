"""The JSON Schema (draft 2020-12) of what the codec writes, made from the dataclasses that it writes.

A schema says which keys and which types there are. Rules on values that a dataclass checks itself, such as
``lr`` above 0, and rules between files are not in it: ``from_json`` has the last word.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union

from attnlab.specs.codec import key_of, type_hints, variants

DRAFT = "https://json-schema.org/draft/2020-12/schema"
JSON = dict[str, Any]

_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


def schema(*annotations: Any, title: str, extra: bool, more: Mapping[str, JSON] | None = None) -> JSON:
    """The schema of a value of one of these types.

    ``extra``: objects may have further keys, as results may. ``more`` are keys that the outermost object
    must have besides those of its dataclass.
    """
    writer = _Writer(extra)
    one_of = [writer.of(each) for each in annotations]
    whole: JSON = one_of[0] if len(one_of) == 1 else {"anyOf": one_of}
    if more:
        whole = {"allOf": [whole, {"type": "object", "properties": dict(more), "required": list(more)}]}
    return {"$schema": DRAFT, "title": title, **whole, "$defs": dict(sorted(writer.parts.items()))}


class _Writer:
    def __init__(self, extra: bool) -> None:
        self.extra = extra
        self.parts: dict[str, JSON] = {}
        self._classes: dict[str, type] = {}

    def of(self, annotation: Any) -> JSON:
        if annotation is Any:
            return {}
        origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (Union, types.UnionType) and type(None) in inner:
            annotation = Union[tuple(each for each in inner if each is not type(None))]  # noqa: UP007
            return _or_null(self.of(annotation))
        kinds = variants(annotation)
        if kinds:
            return self._variants(annotation, kinds)
        if dataclasses.is_dataclass(annotation):
            return self._part(annotation)
        if origin is Literal:
            return {"enum": list(inner)}
        if origin in (list, tuple, dict):
            return self._several(origin, inner)
        if inner and not all(each in _PLAIN for each in inner):
            return {"anyOf": [self.of(each) for each in inner]}
        if inner:
            return {"type": sorted({_PLAIN[each] for each in inner})}
        return {"type": _PLAIN[annotation]}

    def _several(self, origin: type, inner: tuple[Any, ...]) -> JSON:
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(inner[1])}
        if origin is tuple and inner[-1] is not Ellipsis:
            count, places = len(inner), [self.of(each) for each in inner]
            return {"type": "array", "prefixItems": places, "minItems": count, "maxItems": count}
        return {"type": "array", "items": self.of(inner[0])}

    def _variants(self, annotation: Any, kinds: Mapping[str, type]) -> JSON:
        """One of the classes of a union; an open one may have kinds that somebody else adds."""
        one_of = [self._part(each) for each in kinds.values()]
        if hasattr(annotation, "known_kinds"):
            foreign = {"kind": {"type": "string", "not": {"enum": list(kinds)}}}
            one_of.append({"type": "object", "properties": foreign, "required": ["kind"]})
        return one_of[0] if len(one_of) == 1 else {"oneOf": one_of}

    def _part(self, cls: Any) -> JSON:
        """A reference to the schema of a dataclass, which is written once."""
        name = cls.__name__.lstrip("_")
        if self._classes.setdefault(name, cls) is not cls:
            name = f"{cls.__module__}.{name}"
            self._classes[name] = cls
        if name not in self.parts:
            self.parts[name] = {}  # so that one that holds itself ends
            self.parts[name] = self._object(cls)
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, cls: Any) -> JSON:
        hints, properties, required = type_hints(cls), dict[str, JSON](), list[str]()
        for tag in ("kind", "event"):  # what tells the classes of a union apart
            if isinstance(getattr(cls, tag, None), str):
                properties[tag] = {"const": getattr(cls, tag)}
                required.append(tag)
        for field in dataclasses.fields(cls):
            if field.metadata.get("unwritten") or not field.init:
                continue
            properties[key_of(field)] = self.of(hints[field.name])
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                required.append(key_of(field))
        found: JSON = {"type": "object", "properties": properties, "required": required}
        return found if self.extra else {**found, "additionalProperties": False}


def _or_null(found: JSON) -> JSON:
    kind = found.get("type")
    plain = isinstance(kind, str) and len(found) == 1
    return {"type": [kind, "null"]} if plain else {"anyOf": [found, {"type": "null"}]}
