"""Messages of the explorer: what is written is read as it was, and any bytes are read or refused."""

import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from attnlab.errors import InputError
from attnlab.explorer import messages
from attnlab.explorer.edits import Off, Paint, Scale, Swap
from attnlab.explorer.messages import ExamplesQuery, pack, read_frame, read_request, write_frame
from attnlab.explorer.scene import ExampleInput, Job, PixelsInput, Question, TextInput, Values, Want

PIXELS = Values(np.arange(35, dtype=np.uint8).reshape(1, 5, 7))
EDITS = (
    Off("encoder.0.self.3"),
    Off("encoder.0.feed", "mean"),
    Scale("encoder.0.self", 0.5),
    Paint("decoder.0.self.1", {"2": [0.25, 0.5, 0.25]}),
    Swap("decoder.0"),
)
QUESTIONS = [
    Question(TextInput("374+814")),
    Question(ExampleInput("test", 7), TextInput("1+2"), EDITS, 300, Want(False, False, "encoder.0.feed")),
    Question(PixelsInput(PIXELS), PixelsInput(PIXELS), want=Want(("encoder.0.self",))),
]


def request(kind: str, **body: Any) -> Any:
    """A request as it comes back from the wire."""
    return read_request(*read_frame(write_frame({"id": 5, "kind": kind, "run": "zoo:adder", **body})))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_read_as_it_was_written(question: Question) -> None:
    found = request("ask", question=question)
    assert (found.id, found.kind, found.run) == (5, "ask", "zoo:adder")
    assert found.body == question


@pytest.mark.parametrize(
    "job",
    [
        Job("heads", examples=500, split="test", edits=EDITS, other=TextInput("1+2")),
        Job("explain", input=ExampleInput("valid", 3), snapshot=20),
    ],
)
def test_a_job_is_read_as_it_was_written(job: Job) -> None:
    assert request("start", job=job).body == job


def test_the_other_requests() -> None:
    assert read_request({"id": 0, "kind": "list"}, b"").body is None
    assert request("open").body is None
    assert request("examples", split="test", stratum="wrong", start=24, count=12).body == ExamplesQuery(
        "test", "wrong", 24, 12
    )
    picture = Values(np.frombuffer(b"\x89PNG\r\n", dtype=np.uint8))
    assert request("read", picture=picture).body == b"\x89PNG\r\n"
    assert request("cancel", job=3).body == 3
    assert request("findings").body is None
    assert request("start", job={"analysis": "doctor"}).body == Job("doctor")


def test_numbers_are_aligned_and_exact() -> None:
    floats = Values(np.array([[0.1, -2.5, 3e-9]], dtype=np.float32))
    plain, numbers = pack({"a": PIXELS, "b": [floats, None]})
    assert plain == {
        "a": {"shape": [1, 5, 7], "at": 0, "type": "u8"},
        "b": [{"shape": [1, 3], "at": 36, "type": "f32"}, None],
    }
    assert len(numbers) == 36 + 12
    assert np.array_equal(np.frombuffer(numbers, "<f4", 3, 36), floats.array[0])
    frame = write_frame({"id": 1, "a": PIXELS})
    (length,) = struct.unpack("<I", frame[:4])
    start = 4 + length + -length % 4
    assert start % 4 == 0
    assert frame[start : start + 35] == PIXELS.array.tobytes()
    assert json.loads(frame[4 : 4 + length])["a"]["at"] == 0


def ask(**change: Any) -> dict[str, Any]:
    question = {"input": {"text": "1+1"}, **change}
    return {"id": 1, "kind": "ask", "run": "zoo:adder", "question": question}


HEAD = "encoder.0.self.0"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"kind": "ask"}, "has no id"),
    ({"id": True, "kind": "ask"}, "has no id"),
    ({"id": 1, "kind": "aks", "run": "x"}, "of the kind 'aks'"),
    ({"id": 1, "kind": [], "run": "x"}, "of the kind a list"),
    ({"id": 1, "kind": "open"}, "must name its run"),
    ({"id": 1, "kind": "open", "run": "x" * 301}, "must name its run"),
    ({"id": 1, "kind": "open", "run": "x", "path": "/"}, "unknown key 'path'"),
    ({"id": 1, "kind": "ask", "run": "x"}, "question is None"),
    (ask(input={}), "one key"),
    (ask(input={"text": 3}), "text is 3; it must be a text"),
    (ask(input={"file": "/etc/passwd"}), "key 'file'"),
    (ask(input={"example": {"split": "trian", "index": 0}}), "'trian'"),
    (ask(input={"example": {"split": "test", "index": -1}}), "index is -1"),
    (ask(input={"pixels": {"shape": [1, 2, 2], "at": 0, "type": "u8"}}), "outside of the message"),
    (ask(input={"pixels": {"shape": [1, 2, 2], "at": 0, "type": "f32"}}), "must be u8"),
    (ask(input={"pixels": {"shape": [1] * 5, "at": 0, "type": "u8"}}), "at most four"),
    (ask(edits=[{"op": "of", "at": HEAD}]), "'op' that is one of off, scale, pattern, swap"),
    (ask(edits=[{"op": "off", "at": HEAD, "to": "men"}]), "edit.to is 'men'"),
    (ask(edits=[{"op": "off", "at": "x" * 301}]), "no model has such"),
    (ask(edits=[{"op": "off", "at": HEAD, "by": 1}]), "unknown key edit.by"),
    (ask(edits=[{"op": "scale", "at": HEAD, "by": 101}]), "by is 101.0; it must be from 0 to 100"),
    (ask(edits=[{"op": "scale", "at": HEAD, "by": -1}]), "by is -1"),
    (ask(edits=[{"op": "pattern", "at": HEAD, "rows": {"0": [0.5, 0.4]}}]), "sums to 0.9"),
    (ask(edits=[{"op": "pattern", "at": HEAD, "rows": {"0": [2, -1]}}]), "at least 0 and sum to 1"),
    (ask(edits=[{"op": "pattern", "at": HEAD, "rows": {"-1": [1]}}]), "row is named '-1'"),
    (ask(edits=[{"op": "swap", "at": HEAD}] * 201), "at most 200"),
    (ask(snapshot=-3), "snapshot is -3"),
    (ask(want={"patterns": [3]}), "patterns is a list"),
    (ask(want={"guesses": 1}), "guesses is 1"),
    (ask(want={"neurons": True}), "neurons is True"),
    ({"id": 1, "kind": "examples", "run": "x", "split": "train"}, "'train'"),
    ({"id": 1, "kind": "examples", "run": "x", "split": "test", "count": 201}, "count is 201"),
    ({"id": 1, "kind": "examples", "run": "x", "split": "test", "start": -1}, "start is -1"),
    ({"id": 1, "kind": "cancel", "run": "x"}, "needs the id of a job"),
    ({"id": 1, "kind": "start", "run": "x", "job": {"analysis": "prune"}}, "analysis is 'prune'"),
    ({"id": 1, "kind": "start", "run": "x", "job": {"analysis": "heads"}}, "one of the two"),
    ({"id": 1, "kind": "findings", "run": "x", "split": "test"}, "unknown key 'split'"),
    (
        {"id": 1, "kind": "start", "run": "x", "job": {"analysis": "doctor", "examples": 5}},
        "doctor looks at the model as it was trained",
    ),
    (
        {"id": 1, "kind": "start", "run": "x", "job": {"analysis": "heads", "examples": 5001}},
        "examples is 5001",
    ),
    (
        {"id": 1, "kind": "start", "run": "x", "job": {"analysis": "heads", "examples": 5, "split": "t"}},
        "split is 't'",
    ),
]


@pytest.mark.parametrize(("plain", "message"), REFUSED)
def test_what_is_wrong_is_one_sentence(plain: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_request(plain, b"")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"", "0 bytes"),
        (b"\x00\x00", "2 bytes"),
        (b"\xff\xff\xff\xff{}", "which does not fit"),
        (b"\x02\x00\x00\x00[]", "not a JSON object"),
        (b"\x03\x00\x00\x00{\xff}", "not valid JSON"),
        (bytes(messages.FRAME + 1), "at most"),
    ],
)
def test_a_broken_frame_is_refused(frame: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_frame(frame)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": NaN}', "not valid JSON"),
        ('{"a": 1e999}', "not finite"),
        ('{"a": 9007199254740993}', "too large"),
        ('{"a": "\\ud800"}', "half of a character"),
        ('{"a": ' + "[" * 13 + "]" * 13 + "}", "too deep"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "not valid JSON|too deep"),
        ('{"a": [' + "0," * 400_000 + "0]}", "more than 400,000 values"),
        ('{"a": "' + "x" * 10_001 + '"}', "10,001 characters"),
        ('{"' + "x" * 301 + '": 0}', "longer than 300"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
    ],
)
def test_json_has_limits(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        messages.read_json(text.encode())


def test_a_value_that_is_nowhere_is_refused() -> None:
    with pytest.raises(InputError, match="values is None"):
        request("read")
    floats = np.array([1, np.inf], dtype="<f4").tobytes()
    with pytest.raises(InputError, match="not finite"):
        messages.read_values({"shape": [2], "at": 0, "type": "f32"}, floats, "f32")


def survives(frame: bytes) -> None:
    """Reading gives a request or an InputError."""
    try:
        found = read_request(*read_frame(frame))
    except InputError:
        return
    assert found.kind in ("list", "open", "ask", "examples", "read", "start", "cancel")


@given(some.binary(max_size=200))
@example(b"\x02\x00\x00\x00{}")
def test_any_bytes_are_read_or_refused(frame: bytes) -> None:
    survives(frame)


plain_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: (
        some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=12,
)
WORDS = """id kind run question input text example pixels edits op at rows job want patterns shape type
split index picture off scale by examples"""
words = some.sampled_from(WORDS.split())
requests = some.dictionaries(
    words,
    plain_values | some.dictionaries(words, plain_values | some.dictionaries(words, plain_values)),
    max_size=6,
)


@given(
    requests,
    some.sampled_from(["list", "open", "ask", "examples", "read", "start", "cancel"]),
    some.binary(max_size=40),
)
def test_any_json_is_read_or_refused(plain: dict[str, Any], kind: str, numbers: bytes) -> None:
    text = json.dumps({"id": 1, "run": "x", **plain, "kind": kind}).encode()
    survives(struct.pack("<I", len(text)) + text + bytes(-len(text) % 4) + numbers)


@given(some.data())
def test_a_good_request_with_one_part_broken_is_read_or_refused(data: some.DataObject) -> None:
    plain = {"id": 1, "kind": "ask", "run": "x", "question": pack(QUESTIONS[1])[0]}
    part: Any = plain["question"]
    while isinstance(part, dict | list) and part and data.draw(some.booleans()):
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        key = data.draw(some.sampled_from(keys))
        if isinstance(part[key], dict | list) and data.draw(some.booleans()):
            part = part[key]
        else:
            part[key] = data.draw(plain_values)
    text = json.dumps(plain).encode()
    survives(struct.pack("<I", len(text)) + text)


def test_replies() -> None:
    assert messages.reply(3, {"a": 1}) == {"id": 3, "ok": True, "value": {"a": 1}}
    assert messages.refusal(3, "no") == {"id": 3, "ok": False, "error": "no"}
    assert messages.refusal(3, "", dropped=True)["dropped"] is True
    assert messages.progressed(3, 2, 7) == {"id": 3, "progress": [2, 7]}
