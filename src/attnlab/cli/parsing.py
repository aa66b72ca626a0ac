"""From words on the command line to values, through tyro.

A choice between variants is one word: ``--model.positions rotary`` or, with its settings,
``--model.positions rotary:base=500``. The classes and their fields are those of ``attnlab.specs``.
"""

import dataclasses
import inspect
import io
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.conf import Positional as Positional
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from attnlab.errors import ECHOED, LabError, SpecError, brief, nearest, shortened
from attnlab.specs import (
    OptimiserSpec,
    PatchPositionSpec,
    PositionSpec,
    ScheduleSpec,
    Spec,
    StartSpec,
    require,
)
from attnlab.specs.codec import read_variant, variants, write_variant

T = TypeVar("T")

RunName = Annotated[
    Positional[str], tyro.conf.arg(help="A run folder, or a shipped run such as zoo:adder.")
]
Json = Annotated[bool, tyro.conf.arg(help="Print JSON instead of tables.")]

METAVARS = {
    "run": "RUN", "runs": "RUN", "first": "RUN", "second": "RUN", "what": "RUN|KIND", "name": "NAME",
    "inputs": "INPUT", "text": "INPUT", "example": "INPUT", "out": "PATH", "onnx": "FILE", "file": "FILE",
    "catalogue": "FILE", "folder": "FOLDER", "pool": "FOLDER", "heads": "HEAD", "sections": "SECTION",
    "patch": "ROW,COLUMN", "lengths": "N,N,...", "cluster": "ADDRESS",
}  # fmt: skip
"""What help texts write for a value, by the name of its parameter; others by their type, or by their own
name."""
_BY_TYPE: dict[Any, str] = {int: "N", float: "X"}

_registry = ConstructorRegistry()

_SECONDS = re.compile(r"(?:(\d+(?:\.\d+)?)m(?:in)?)?(?:(\d+(?:\.\d+)?)s?)?", re.ASCII)

_FRAME = "│╰╯ "  # a terminal without these signs gets rules of hyphens and no frame
_NO_DEFAULT = re.compile(r"\s*\(default:\s*(?:''|None|False)?\)")
"""What tyro says of an option that is left out by default."""
_RULE = re.compile(r"─{3,}|-{3,}")
_OPTION = re.compile(r"--[\w.-]+")
_VALUE = r"Error parsing ([^:]+): "
_NO_TYPE = r"no type matching .*?\b{}\b.*? could be instantiated from \[(.*?)\]"
_WRONG = (
    (re.compile(_VALUE + r"invalid literal for int\(\) with base 10: ('.*?')"), "a whole number"),
    (re.compile(_VALUE + r"could not convert string to float: ('.*?')"), "a number"),
    (re.compile(_VALUE + _NO_TYPE.format("N")), "a whole number"),
    (re.compile(_VALUE + _NO_TYPE.format("X")), "a number"),
)
"""How tyro says that a value is no number, with its name and itself, and the rule in our words."""
_QUOTED = re.compile(r"'[^']+'")
_MISSING = re.compile(r"^Missing from attnlab [\w ]+: (?:[A-Z]+ )?")


def _read_seed(words: list[str]) -> int:
    """As in a spec: what every generator of chance takes."""
    seed = int(words[0])
    require(0 <= seed < 2**31, "--seed", seed, f"from 0 to {2**31 - 1}")
    return seed


def read_seconds(word: str) -> float:
    """Seconds, as ``60``, ``60s``, ``2m`` or ``1m30s``."""
    found = _SECONDS.fullmatch(word.strip())
    if not word.strip() or found is None:
        raise SpecError(f"--budget is {brief(word)}; write seconds or minutes, such as 60s, 2m or 60")
    minutes, seconds = (float(each or 0) for each in found.groups())
    return 60 * minutes + seconds


Seconds = Annotated[
    float,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="TIME",
        instance_from_str=lambda words: read_seconds(words[0]),
        is_instance=lambda value: isinstance(value, float),
        str_from_instance=lambda value: [f"{value:g}s"],
    ),
]


Seed = Annotated[
    int,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="N",
        instance_from_str=_read_seed,
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    ),
]
"""A number that decides what is drawn at random."""


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
    with _registry, one_sentence(command), _wrapped():
        filled: Any = tyro.cli(
            call if isinstance(call, type) else _held(call),
            args=list(arguments),
            prog=f"attnlab {command}",
            description=about,
            config=(tyro.conf.FlagCreatePairsOff, tyro.conf.AvoidSubcommands),
            **extra,
        )
    return filled if isinstance(call, type) else filled()


@contextmanager
def _wrapped() -> Iterator[None]:
    """Break the sentences of a help text that is printed within the block where the terminal ends."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        width = shutil.get_terminal_size().columns
        for line in _NO_DEFAULT.sub("", printed.getvalue().replace("``", "")).splitlines():
            whole = line.startswith((" ", "Example: "))
            print(line.rstrip() if whole else "\n".join(textwrap.wrap(line, width) or [""]))


def parse_part(
    parts: Mapping[str, Callable[..., int | None]], arguments: list[str], *, command: str, usage: str
) -> int | None:
    """Run the part of a command that the first of ``arguments`` names."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage)
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in parts:
        raise SpecError(f"unknown command {brief(name)} of 'attnlab {command}'{nearest(name, parts)}")
    return parse(parts[name], rest, command=f"{command} {name}")


def take_option(arguments: list[str], option: str) -> tuple[str | None, list[str]]:
    """The value of ``--option VALUE`` or ``--option=VALUE``, and the words without it."""
    for place, word in enumerate(arguments):
        if word == option:
            if place + 1 == len(arguments):
                raise SpecError(f"{option} needs a value")
            return arguments[place + 1], arguments[:place] + arguments[place + 2 :]
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}="), arguments[:place] + arguments[place + 1 :]
    return None, arguments


def _held(call: Callable[..., T]) -> Callable[..., Callable[[], T]]:
    """Takes what ``call`` takes and leaves the calling for later, when tyro has nothing more to say."""

    @wraps(call)
    def hold(*given: Any, **named: Any) -> Callable[[], T]:
        return partial(call, *given, **named)

    hints, signature = get_type_hints(call, include_extras=True), inspect.signature(call)
    parameters = [
        each.replace(annotation=_shown(each.name, hints[each.name]))
        for each in signature.parameters.values()
    ]
    hold.__annotations__ = {each.name: each.annotation for each in parameters}
    hold.__doc__ = _arguments_in_a_line(inspect.getdoc(call) or "")
    vars(hold)["__signature__"] = signature.replace(parameters=parameters)
    del vars(hold)["__wrapped__"]  # tyro would read that
    return hold


def _shown(name: str, hint: Any) -> Any:
    """The annotation of a parameter with what help texts write for its value; choices stay as they are."""
    plain, several = _bare(hint)
    own = any(isinstance(each, PrimitiveConstructorSpec) for each in getattr(hint, "__metadata__", ()))
    if plain not in (str, int, float) or own:
        return hint
    word = _BY_TYPE.get(plain) or METAVARS.get(name, name.upper())
    return Annotated[hint, tyro.conf.arg(metavar=f"{word} ..." if several else word)]


def _arguments_in_a_line(text: str) -> str:
    """A docstring whose arguments are a line each, however long: help texts break them where they must."""
    return re.sub(
        r"(?<=\n)(    \w.*(?:\n {8}.*)+)", lambda found: " ".join(found[1].split("\n        ")), text
    )


def _bare(hint: Any) -> tuple[Any, bool]:
    """The type of one value, without None, and whether there may be several."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    inner = [each for each in get_args(hint) if each not in (NoneType, Ellipsis)]
    if get_origin(hint) in (list, tuple) and len(inner) == 1:
        return _bare(inner[0])[0], True
    if get_origin(hint) in (Union, UnionType) and len(inner) == 1:
        return _bare(inner[0])
    return hint, False


@_registry.primitive_rule
def _variant_rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """One word for a value of a closed union of specs."""
    if info.type not in (OptimiserSpec, PatchPositionSpec, PositionSpec, ScheduleSpec, StartSpec):
        return None
    kinds = variants(info.type)
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="{" + "|".join(kinds) + "}[:KEY=VALUE,...]",
        instance_from_str=lambda words: read_variant(info.type, words[0]),
        is_instance=lambda value: type(value) in kinds.values(),
        str_from_instance=lambda value: [write_variant(value)],
    )


@_registry.primitive_rule
def _plain_rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Numbers and words of a spec, with what stands for them in help texts."""
    word = {**_BY_TYPE, str: "TEXT"}.get(info.type)
    if word is None:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=word,
        instance_from_str=lambda words: info.type(words[0]),
        is_instance=lambda value: isinstance(value, (float, int) if info.type is float else info.type),
        str_from_instance=lambda value: [str(value)],
    )


_HELP = {
    "seed": "The seed of all chance: data, first weights, order and dropout.",
    "engine": "What computes gradients: torch's autograd, or hand-written kernels of patch attention.",
}
_INTERNAL = ("start", "source")
"""Keys of a spec that attnlab fills by itself."""


@_registry.struct_rule
def _spec_rule(info: StructTypeInfo) -> StructConstructorSpec | None:
    """A spec without the keys that nobody sets by hand."""
    if info.type is not Spec:
        return None
    hints = get_type_hints(Spec, include_extras=True)
    for name in _INTERNAL:
        hints[name] = Annotated[hints[name], tyro.conf.Suppress]
    names = [each.name for each in dataclasses.fields(Spec)]
    return StructConstructorSpec(
        instantiate=Spec,
        fields=tuple(
            StructFieldSpec(name, hints[name], getattr(info.default, name), _HELP.get(name))
            for name in names
        ),
    )


@contextmanager
def one_sentence(command: str) -> Iterator[None]:
    """Turn a refusal by tyro within the block into a ``LabError``."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            yield
    except SystemExit as left:
        if left.code in (0, None):
            raise
        raise LabError(
            f"{sentence(said.getvalue())} (attnlab {command} --help lists the options)"
        ) from None


def sentence(box: str) -> str:
    """The first paragraph of tyro's box, and the option that was perhaps meant; of a value its rule.

    The box has a title, then paragraphs between rules: what is wrong, perhaps "Perhaps you meant:" with
    similar options, and where help is.
    """
    _, *inside = box.splitlines()  # the first line is the title
    text = _RULE.split(" ".join(line.strip(_FRAME) for line in inside))
    first, *others = (" ".join(each.split()) for each in text if each.strip())
    for pattern, rule in _WRONG:
        if wrong := pattern.match(first):
            return f"{wrong[1]} is {shortened(wrong[2], ECHOED)}; it must be {rule}"
    meant = next((_OPTION.search(each) for each in others if each.startswith("Perhaps you meant")), None)
    told = _MISSING.sub("missing: ", first.removesuffix("(required)").rstrip(". "))
    told = _echo_less(told[:1].lower() + told[1:])
    return f"{told}; did you mean {meant.group()}?" if meant else told


def _echo_less(told: str) -> str:
    """With less of what was given, where that is long."""
    head, colon, given = told.partition(": ")
    if head == "unrecognized options":
        return f"{head}{colon}{shortened(given, ECHOED)}"
    return _QUOTED.sub(lambda word: shortened(word[0], ECHOED), told)
