"""From words on the command line to values, through tyro.

A choice between variants is one word: ``--model.positions rotary`` or, with its settings,
``--model.positions rotary:base=500``. The classes and their fields are those of ``attnlab.spec``.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from attnlab.errors import SpecError, nearest
from attnlab.spec import OptimiserSpec, PositionSpec, ScheduleSpec, from_json, to_json, variants

T = TypeVar("T")

_registry = ConstructorRegistry()


def parse(
    call: Callable[..., T],
    arguments: Sequence[str],
    *,
    command: str,
    default: Any = None,
    about: str | None = None,
) -> T:
    """Let tyro fill the parameters of ``call`` (a function or a dataclass) from ``arguments``."""
    extra = {} if default is None else {"default": default}
    with _registry:
        return tyro.cli(
            call,
            args=list(arguments),
            prog=f"attnlab {command}",
            description=about,
            config=(tyro.conf.FlagCreatePairsOff,),
            **extra,
        )


@_registry.primitive_rule
def _variant_rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """One word for a value of a closed union of specs."""
    if info.type not in (OptimiserSpec, PositionSpec, ScheduleSpec):
        return None
    kinds = variants(info.type)
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="{" + "|".join(kinds) + "}[:KEY=VALUE,...]",
        instance_from_str=lambda words: read_variant(info.type, words[0]),
        is_instance=lambda value: type(value) in kinds.values(),
        str_from_instance=lambda value: [write_variant(value)],
    )


def read_variant(union: Any, word: str) -> Any:
    """``rotary:base=500`` as a value of ``union``."""
    kind, _, settings = word.partition(":")
    kinds = variants(union)
    if kind not in kinds:
        raise SpecError(f"{kind!r} is no known choice{nearest(kind, kinds)}")
    data: dict[str, Any] = {"kind": kind}
    for setting in filter(None, settings.split(",")):
        key, equals, text = setting.partition("=")
        if not equals:
            raise SpecError(f"{word!r} is no choice of the form kind:key=value,key=value")
        try:
            data[key] = int(text) if text.lstrip("+-").isdigit() else float(text)
        except ValueError as error:
            raise SpecError(f"{key} in {word!r} is {text!r}, but it must be a number") from error
    return from_json(union, data, kind)


def write_variant(value: Any) -> str:
    """The word that ``read_variant`` reads as ``value``."""
    data = to_json(value)
    kind = data.pop("kind")
    settings = ",".join(f"{key}={setting}" for key, setting in data.items())
    return f"{kind}:{settings}" if settings else str(kind)
