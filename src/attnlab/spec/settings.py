"""A spec with some of its keys set to other values: what a sweep does for each trial.

Keys are dotted, as in flags: ``training.lr``, ``model.positions``, ``training.optimiser.weight_decay``.
Settings go through JSON, so every rule of the spec is checked, and only once all of them are in
place: a width of 96 with 12 heads is fine, whichever is named first.
"""

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.errors import SpecError, nearest
from attnlab.spec.codec import from_json, to_json, variants
from attnlab.spec.experiment import Spec
from attnlab.spec.rules import require
from attnlab.spec.words import word_as_json


def with_settings(spec: Spec, settings: Mapping[str, Any]) -> Spec:
    """``spec`` with dotted keys set; a variant is a word (``rotary:base=500``) or an object with a kind."""
    data = to_json(spec)
    # A variant goes before its own settings, which are keys of the new variant, not of the old one.
    for key in sorted(settings, key=lambda key: key.count(".")):
        known = dict(_keys(Spec, data))
        if key not in known:
            raise SpecError(f"{key} is no key of this spec{nearest(key, known)}")
        *groups, last = key.split(".")
        place = data
        for group in groups:
            place = place.setdefault(group, {})  # a group that came later is not written by default
        place[last] = _as_json(known[key], key, settings[key])
    return from_json(Spec, data)


def _keys(cls: Any, data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key that can be set, with its type; keys of a variant are those of its present kind."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        key, hint = prefix + field.name, hints[field.name]
        kinds = variants(hint)
        inner = _kind_class(kinds, data.get(field.name)) if kinds else hint
        if kinds or not dataclasses.is_dataclass(hint):
            yield key, hint
        if dataclasses.is_dataclass(inner):
            yield from _keys(inner, data.get(field.name, {}), f"{key}.")


def _kind_class(kinds: Mapping[str, type], value: Any) -> type | None:
    """The class of a variant's JSON; None if it has no known kind, which ``from_json`` tells later."""
    kind = value.get("kind") if isinstance(value, dict) else None
    return kinds.get(kind) if isinstance(kind, str) else None


def _as_json(hint: Any, key: str, value: Any) -> Any:
    """A word becomes an object, and a whole float serves as an integer, since samplers give floats."""
    if variants(hint):
        return _variant_as_json(hint, key, value)
    if hint is int and type(value) is float:
        require(value.is_integer(), key, value, "a whole number")
        return int(value)
    return value


def _variant_as_json(hint: Any, key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return dict(value) if isinstance(value, dict) else value
    try:
        return word_as_json(hint, value)
    except SpecError as error:
        raise SpecError(f"{key}: {error}") from error
