"""Messages between the page and Python: JSON and numbers in a binary part, read strictly, within limits.

    frame   u32 little-endian length of the JSON | JSON | zeros to a multiple of 4 | numbers

A ``Values`` is ``{"shape": [...], "at": OFFSET, "type": "f32" | "u8"}`` in the JSON; OFFSET counts from the
first byte of the numbers and is a multiple of 4. Whatever is wrong with a message is one sentence, an
``InputError``, whoever wrote the bytes. A request has ``id``, ``kind``, ``run`` (but for ``list``) and

    list                                            open
    ask       question                              examples  split, stratum, start, count
    read      picture (Values, a file's bytes)      start     job
    findings  (the diagnosis that is kept)          cancel    job (the id of its start)
"""

import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from attnlab.errors import InputError, LabError
from attnlab.explorer.edits import Off, Paint, Scale, Swap, read_edit, write_edit
from attnlab.explorer.scene import (
    ExampleInput,
    Input,
    Job,
    PixelsInput,
    Question,
    TextInput,
    Values,
    Want,
)
from attnlab.specs import from_json

T = TypeVar("T")
Kind = Literal["list", "open", "ask", "examples", "read", "findings", "start", "cancel"]
Plain = dict[str, Any]

FRAME = 8 * 2**20
"""Bytes of a message from the page, at most."""
JSON_PART = 2**21
TEXT = 10_000
"""Characters of an input, at most."""
NAME = 300
"""Characters of any other word, at most."""
EDITS = 200
PAGE = 200
"""Examples that are shown at once, at most."""
EXAMPLES = 5_000
"""Examples of a job, at most."""
DEPTH = 12
WORDS = 400_000
"""Single values in the JSON of a message, at most."""
_LARGEST = 2**53
_TYPES: dict[str, Any] = {"f32": np.dtype("<f4"), "u8": np.dtype("u1")}


@dataclass(frozen=True)
class ExamplesQuery:
    split: Literal["valid", "test"]
    stratum: str = "all"
    start: int = 0
    count: int = 24

    def __post_init__(self) -> None:
        _require(0 <= self.start < _LARGEST, "start", self.start, "at least 0")
        _require(1 <= self.count <= PAGE, "count", self.count, f"from 1 to {PAGE}")


@dataclass(frozen=True)
class Request:
    """``run`` is empty for ``list``. ``body`` is what the kind asks for; the bytes of a picture for
    ``read``, the id of its start for ``cancel``, None for ``list``, ``open`` and ``findings``.
    """

    id: int
    kind: Kind
    run: str
    body: Question | ExamplesQuery | Job | bytes | int | None


# writing


def pack(message: Any) -> tuple[Any, bytes]:
    """A message, which may hold dataclasses and ``Values``, as JSON values and the bytes of its numbers."""
    writer = _Writer([], 0)
    return writer.plain(message), b"".join(writer.parts)


@dataclass
class _Writer:
    parts: list[bytes]
    size: int

    def plain(self, value: Any) -> Any:
        if value is None or isinstance(value, str | int | float):
            return value
        if isinstance(value, Values):
            return self.values(value)
        if isinstance(value, Off | Scale | Paint | Swap):
            return write_edit(value)
        if isinstance(value, ExampleInput):
            return {"example": {"split": value.split, "index": value.index}}
        if is_dataclass(value) and not isinstance(value, type):
            return {each.name: self.plain(getattr(value, each.name)) for each in fields(value)}
        if isinstance(value, dict):
            return {str(key): self.plain(each) for key, each in value.items()}
        return [self.plain(each) for each in value]

    def values(self, value: Values) -> Plain:
        short = value.array.dtype == np.uint8
        raw = np.ascontiguousarray(value.array, dtype=_TYPES["u8" if short else "f32"]).tobytes()
        found = {"shape": list(value.shape), "at": self.size, "type": "u8" if short else "f32"}
        self.parts += [raw, bytes(-len(raw) % 4)]
        self.size += len(raw) + -len(raw) % 4
        return found


def write_frame(message: Any) -> bytes:
    """A message as one binary frame."""
    plain, numbers = pack(message)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return b"".join((struct.pack("<I", len(text)), text, bytes(-len(text) % 4), numbers))


def reply(number: int, value: Any) -> Plain:
    """The answer to request ``number``, to be packed or framed."""
    return {"id": number, "ok": True, "value": value}


def refusal(number: int, error: str, *, dropped: bool = False) -> Plain:
    """That there is no answer to request ``number``; ``dropped``: a newer question overtook it."""
    found = {"id": number, "ok": False, "error": error}
    return {**found, "dropped": True} if dropped else found


def progressed(number: int, done: int, total: int) -> Plain:
    """How far the job of request ``number`` is."""
    return {"id": number, "progress": [done, total]}


# reading


def read_frame(frame: bytes) -> tuple[Plain, bytes]:
    """The JSON object of a frame and the bytes of its numbers."""
    if len(frame) > FRAME:
        raise InputError(f"the message has {len(frame):,} bytes; at most {FRAME:,} are taken")
    if len(frame) < 4:
        raise InputError(f"the message has {len(frame)} bytes; it must begin with the length of its JSON")
    (length,) = struct.unpack_from("<I", frame)
    if length > min(len(frame) - 4, JSON_PART):
        raise InputError(f"the JSON of a message is {length:,} bytes long, which does not fit")
    plain = read_json(frame[4 : 4 + length])
    return plain, frame[4 + length + -length % 4 :]


def read_json(text: bytes) -> Plain:
    """A JSON object within the limits, whose numbers are all finite."""
    try:
        plain = json.loads(text.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError("the message is not valid JSON") from error
    if not isinstance(plain, dict):
        raise InputError("the message is not a JSON object")
    check_bounds(plain)
    return plain


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not a number")


def check_bounds(plain: Any) -> None:
    """Refuse what is nested too deep, too long, too many or not finite."""
    left, count = [(plain, 0)], 0
    while left:
        value, depth = left.pop()
        count += 1
        if count > WORDS or depth > DEPTH:
            raise InputError(f"the message holds more than {WORDS:,} values or is nested too deep")
        if isinstance(value, str):
            _check_text(value)
        if isinstance(value, int | float) and not abs(value) < _LARGEST:
            raise InputError("a number is not finite, or too large")
        if isinstance(value, dict):
            if any(not isinstance(key, str) or len(key) > NAME for key in value):
                raise InputError(f"a key of the message is longer than {NAME} characters")
            left += [(each, depth + 1) for each in value.values()]
        elif isinstance(value, list):
            left += [(each, depth + 1) for each in value]


def _check_text(text: str) -> None:
    if len(text) > TEXT:
        raise InputError(f"a text has {len(text):,} characters; at most {TEXT:,} are taken")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError("a text has half of a character in it") from error


def request_id(plain: Plain) -> int | None:
    """The id that a request has, also if the rest of it is wrong; None if it has none."""
    found = plain.get("id")
    return found if type(found) is int and 0 <= found < _LARGEST else None


def read_request(plain: Plain, numbers: bytes) -> Request:
    """A request of its JSON, as ``read_frame`` gives it, and its numbers."""
    kind, number, run = plain.get("kind"), request_id(plain), plain.get("run", "")
    if number is None:
        raise InputError("a request has no id that is a whole number")
    if not isinstance(kind, str) or kind not in _BODIES:
        raise InputError(f"a request is of the kind {_short(kind)}; known: {', '.join(_BODIES)}")
    if not isinstance(run, str) or len(run) > NAME or (kind != "list" and not run):
        raise InputError(f"a request of the kind {kind} must name its run")
    allowed, read = _BODIES[kind]
    unknown = plain.keys() - {"id", "kind", "run", *allowed}
    if unknown:
        raise InputError(f"a request of the kind {kind} has the unknown key {_short(min(unknown))}")
    body = {key: plain[key] for key in allowed if key in plain}
    return Request(number, kind, run, read(body, numbers))  # type: ignore[arg-type]  # a key of _BODIES


def read_question(plain: Any, numbers: bytes = b"") -> Question:
    """A question of its JSON."""
    given = _object(plain, "question", {"input", "other", "edits", "snapshot", "want"})
    if "input" not in given:
        raise InputError("the question has no input")
    return Question(
        read_input(given["input"], numbers),
        None if given.get("other") is None else read_input(given["other"], numbers),
        read_edits(given.get("edits", [])),
        _whole(given.get("snapshot"), "snapshot"),
        _read_want(given.get("want", {})),
    )


def read_job(plain: Any, numbers: bytes = b"") -> Job:
    """A job of its JSON."""
    keys = {"analysis", "input", "examples", "split", "edits", "other", "snapshot"}
    given = _object(plain, "job", keys)
    analysis, split = given.get("analysis", ""), given.get("split", "valid")
    known = ("ablate", "explain", "heads", "doctor")
    _require(analysis in known, "analysis", analysis, "ablate, explain, heads or doctor")
    if analysis == "doctor":
        if given.keys() != {"analysis"}:
            raise InputError("doctor looks at the model as it was trained, and takes nothing else")
        return Job(analysis)
    _require(split in ("valid", "test"), "split", split, "valid or test")
    inputs = [given.get(name) for name in ("input", "other")]
    one, other = (None if each is None else read_input(each, numbers) for each in inputs)
    count = _whole(given.get("examples"), "examples")
    if (one is None) == (count is None):
        raise InputError("a job needs an input or a number of examples, one of the two")
    _require(count is None or 1 <= count <= EXAMPLES, "examples", count, f"from 1 to {EXAMPLES:,}")
    edits, snapshot = read_edits(given.get("edits", [])), _whole(given.get("snapshot"), "snapshot")
    return Job(analysis, one, count, split, edits, other, snapshot)


def read_edits(plain: Any) -> tuple[Any, ...]:
    """Edits of their JSON."""
    if not isinstance(plain, list) or len(plain) > EDITS:
        raise InputError(f"edits must be a list of at most {EDITS}")
    for each in plain:
        if isinstance(each, dict) and isinstance(each.get("at"), str) and len(each["at"]) > NAME:
            raise InputError(f"an edit is at a name of {len(each['at']):,} characters; no model has such")
    return tuple(_one_sentence(partial(read_edit, each)) for each in plain)


def read_input(plain: Any, numbers: bytes = b"") -> Input:
    """``{text}``, ``{example: {split, index}}`` or ``{pixels}``."""
    if not isinstance(plain, dict) or len(plain) != 1:
        raise InputError("an input must have one key: text, example or pixels")
    ((key, value),) = plain.items()
    if key == "text":
        _require(isinstance(value, str), "text", value, "a text")
        return TextInput(value)
    if key == "pixels":
        return PixelsInput(read_values(value, numbers, "u8"))
    if key == "example":
        found = _one_sentence(lambda: from_json(ExampleInput, value, "example"))
        _require(0 <= found.index < _LARGEST, "index", found.index, "at least 0")
        return found
    raise InputError(f"an input has the key {_short(key)}; it must be text, example or pixels")


def read_values(plain: Any, numbers: bytes, kind: str) -> Values:
    """The numbers that ``plain`` points at, of the type ``kind``."""
    given = _object(plain, "values", {"shape", "at", "type"})
    shape: Any = given.get("shape")
    at = given.get("at")
    if given.get("type") != kind:
        raise InputError(f"values are of the type {_short(given.get('type'))}; they must be {kind}")
    good = isinstance(shape, list) and len(shape) <= 4 and all(type(each) is int for each in shape)
    if not good or not all(0 <= each <= FRAME for each in shape) or type(at) is not int:
        raise InputError("values must have a shape of at most four whole numbers, and say where they are")
    count, width = math.prod(shape), _TYPES[kind].itemsize
    if at < 0 or at % 4 or at + count * width > len(numbers):
        raise InputError(f"values of the shape {shape} at {at} lie outside of the message")
    raw = numbers[at : at + count * width]
    array = np.frombuffer(raw, dtype=_TYPES[kind]).reshape(shape) if raw else np.zeros(shape, _TYPES[kind])
    if kind == "f32" and not np.isfinite(array).all():
        raise InputError("a number is not finite, or too large")
    return Values(array)


def _read_want(plain: Any) -> Want:
    given = _object(plain, "want", {"patterns", "guesses", "neurons"})
    patterns, guesses, neurons = (
        given.get(k, getattr(Want(), k)) for k in ("patterns", "guesses", "neurons")
    )
    listed = isinstance(patterns, list) and all(isinstance(each, str) for each in patterns)
    _require(isinstance(patterns, bool) or listed, "patterns", patterns, "true, false or a list of sites")
    _require(isinstance(guesses, bool), "guesses", guesses, "true or false")
    _require(neurons is None or isinstance(neurons, str), "neurons", neurons, "a feed-forward part or null")
    return Want(tuple(patterns) if listed else patterns, guesses, neurons)


def _read_query(body: Plain, numbers: bytes) -> ExamplesQuery:
    return _one_sentence(lambda: from_json(ExamplesQuery, body, "examples"))


def _read_picture(body: Plain, numbers: bytes) -> bytes:
    return read_values(body.get("picture"), numbers, "u8").array.tobytes()


def _read_cancel(body: Plain, numbers: bytes) -> int:
    number = _whole(body.get("job"), "job")
    if number is None:
        raise InputError("cancel needs the id of a job")
    return number


_BODIES: dict[str, tuple[tuple[str, ...], Callable[[Plain, bytes], Any]]] = {
    "list": ((), lambda body, numbers: None),
    "open": ((), lambda body, numbers: None),
    "findings": ((), lambda body, numbers: None),
    "ask": (("question",), lambda body, numbers: read_question(body.get("question"), numbers)),
    "examples": (("split", "stratum", "start", "count"), _read_query),
    "read": (("picture",), _read_picture),
    "start": (("job",), lambda body, numbers: read_job(body.get("job"), numbers)),
    "cancel": (("job",), _read_cancel),
}


def _object(plain: Any, name: str, keys: set[str]) -> Plain:
    if not isinstance(plain, dict):
        raise InputError(f"{name} is {_short(plain)}; it must be an object")
    unknown = plain.keys() - keys
    if unknown:
        raise InputError(f"{name} has the unknown key {_short(min(unknown, key=str))}")
    return plain


def _whole(value: Any, name: str) -> int | None:
    good = value is None or (type(value) is int and 0 <= value < _LARGEST)
    _require(good, name, value, "a whole number of at least 0")
    return value


def _require(holds: bool, name: str, value: Any, rule: str) -> None:
    if not holds:
        raise InputError(f"{name} is {_short(value)}; it must be {rule}")


def _short(value: Any) -> str:
    """``value`` in a sentence."""
    text = repr(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _one_sentence(read: Callable[[], T]) -> T:
    """What ``read`` gives; what it refuses is a sentence that fits into a page."""
    try:
        return read()
    except LabError as error:
        text = str(error)
        raise InputError(text if len(text) <= NAME else f"{text[: NAME - 3]}...") from error
