"""A choice between variants as one word: ``rotary`` or, with its settings, ``rotary:base=500``.

Flags, sweep files and tables all write variants this way; in a run folder they are JSON.
"""

import typing
from typing import Any, Literal

from attnlab.errors import SpecError, nearest
from attnlab.spec.codec import from_json, to_json, variants


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
        raise SpecError(f"{kind!r} is no known choice{nearest(kind, kinds)}")
    data: dict[str, Any] = {"kind": kind}
    for setting in filter(None, settings.split(",")):
        key, equals, text = setting.partition("=")
        if not equals:
            raise SpecError(f"{word!r} is no choice of the form kind:key=value,key=value")
        if _takes_word(kinds[kind], key):
            data[key] = text
            continue
        try:
            data[key] = int(text) if text.lstrip("+-").isdigit() else float(text)
        except ValueError as error:
            raise SpecError(f"{key} in {word!r} is {text!r}, but it must be a number") from error
    return data


def _takes_word(cls: type, key: str) -> bool:
    """Whether the setting is a choice between words."""
    return typing.get_origin(typing.get_type_hints(cls).get(key)) is Literal
