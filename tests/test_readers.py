"""Readers of tasks in JavaScript read and answer as the tasks do in Python, with the same sentences."""

from functools import cache
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlab import task
from attnlab.analysis.subjects import read_example
from attnlab.errors import ECHOED, InputError, LabError, SpecError, brief, shortened
from attnlab.notation import parse_head
from attnlab.problems.addition import Addition
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.specs import PositionSpec, Task
from attnlab.specs.codec import read_variant
from v8 import V8, source


@task(symbols="()", classes=["no", "yes"])
def closed(rng: Random, pairs: int = 3) -> tuple[str, str]:
    """Whether as many brackets close as open."""
    row = "".join(rng.choices("()", k=rng.randint(1, 2 * pairs)))
    return row, "yes" if 2 * row.count("(") == len(row) else "no"


@task(symbols=["red", "blue", "x"], answer="sequence")
def mirrored(rng: Random, length: int = 3) -> tuple[list[str], list[str]]:
    """Colours from behind, without any x."""
    row = rng.choices(["red", "blue", "x"], k=rng.randint(1, length))
    return row, [each for each in row[::-1] if each != "x"]


@task(symbols=["a", "\u00fc", "\U0001f600"], answer="sequence")
def doubled(rng: Random) -> tuple[str, str]:
    """Letters beyond ASCII, some of them two units of JavaScript."""
    row = "".join(rng.choices(["a", "\u00fc", "\U0001f600"], k=rng.randint(1, 3)))
    return row, row + row


TASKS: dict[str, Task] = {
    "sums": Addition(order="least"),
    "long sums": Addition(digits=12, operands="reference", order="most"),
    "lists": Sorting(),
    "brackets": closed(),
    "colours": mirrored(),
    "letters": doubled(),
}
TABLE = {
    "sums": [
        "374+814", " 0 +\t007", "999+1", "1000+1", "0001+2", "374*814", "1+", "", " \n", "+", "1+2+3",
        "-1+2", "0" * 16_000, "0" * 300 + "1+" + "0" * 300,
        "x" * 300, "\u0663+\u0664", "\U0001d7d8\U0001d7e9+1", "12 3+4", "1+2\u00a0", "1\x1c+\x852",
        "\ufeff1+2", "it's+1", "\"it's\"", "a\\b", "\x00\x7f\u2028\U000e0001",
    ],
    "long sums": [
        "999999999999+999999999999", "1+2", "100000000000 + 100000000000", "1000000000000+1", "9" * 5000,
    ],
    "lists": [
        "3 5 5 9 8", "3, 5,,5\n9", "1", "", " ,, ", "1 100", "1 -1", "+3 -0", "00000000099 1", "1 2.5",
        "x" * 50, "\U0001f600" * 50, "1\x0b2", "\x0b1 2", "1\u30002", "\u0663 4", " ".join(["7"] * 16_385),
        "1 " + "9" * 60,
    ],
    "brackets": ["()", "\u0663", "(", ")(", "((()))", "((((((((", "", "  ()\n", "( )", "(a)", "'"],
    "colours": ["red blue", "red", "blue x red", "green", "", "red  blue\tx red", "redblue", "x x x"],
    "letters": ["a", "a\u00fc\U0001f600", "\U0001f600", "b", "aa\U0001f680", "aaaa", " a ", "a a"],
}  # fmt: skip
PRINTED = st.characters(exclude_categories=("Cs", "Cn"))  # what one of the two may not know yet
NEAR = {
    "sums": "0123456789+ \u0663",
    "long sums": "0123456789+ ",
    "lists": "0123456789 ,+-\t",
    "brackets": "() ",
    "colours": "redblux ",
    "letters": "a\u00fc\U0001f600 ",
}


@cache
def engine(name: str) -> V8:
    reader = (TASKS | IMAGES)[name].reader()
    return V8(python=source("python.js"), reader=reader.source)


@cache
def facts(name: str) -> Any:
    return (TASKS | IMAGES)[name].reader().facts


def in_python(task: Task, text: str) -> dict[str, Any]:
    try:
        example = task.parse(text)
    except InputError as error:
        return {"error": str(error)}
    shown = task.show(example)
    value = {
        "tokens": example.inputs[0][0].tolist(),
        "labels": shown.labels,
        "name": shown.name,
        "truth": shown.truth,
        "targets": None if shown.truth is None else example.targets.flatten().tolist(),
    }
    return {"value": value}


def in_page(name: str, text: str) -> Any:
    run = engine(name)
    if name not in _loaded:
        _loaded.add(name)
        run.call("((facts) => { globalThis.facts = facts; return 0 })", facts(name))
    return run.call("((text) => reader.read(text, facts, python))", text)


_loaded = set[str]()


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in TABLE for text in TABLE[name]])
def test_a_table_of_texts_is_read_alike(name: str, text: str) -> None:
    assert in_page(name, text) == in_python(TASKS[name], text)


@pytest.mark.parametrize("name", TASKS)
def test_any_text_is_read_alike(name: str) -> None:
    @given(st.text(NEAR[name], max_size=30) | st.text(PRINTED, max_size=12))
    def alike(text: str) -> None:
        assert in_page(name, text) == in_python(TASKS[name], text)

    alike()


@pytest.mark.parametrize("name", TASKS)
def test_answers_are_said_alike(name: str) -> None:
    task = TASKS[name]
    rows = torch.randint(task.vocabulary, (100, task.target_length)).tolist()
    known = task.splits(0).test.targets[:20]
    rows += known.reshape(len(known), -1).tolist()
    said = engine(name).call(
        "((rows, facts) => rows.map((row) => reader.answer(row, facts)))", rows, facts(name)
    )
    assert said["value"] == [task.answer(torch.tensor(row)) for row in rows]


IMAGES: dict[str, Task] = {"digits": Digits(), "grids": Grids(rows=1, columns=3)}


@pytest.mark.parametrize("name", IMAGES)
def test_what_images_show_is_said_alike_and_they_cannot_be_written(name: str) -> None:
    task = IMAGES[name]
    assert not task.reader().writes
    assert in_page(name, "7") == in_python(task, "7")
    rows = torch.randint(10, (20, task.target_length)).tolist()
    said = engine(name).call(
        "((rows, facts) => rows.map((row) => reader.answer(row, facts)))", rows, facts(name)
    )
    assert said["value"] == [task.answer(torch.tensor(row)) for row in rows]


READ = {
    "sums": ["7 + 8", "99+1", "0+00", "12+34"],
    "lists": ["3 5 8", "9, 1", "1 2 3", "7 7 7 7"],
    "brackets": ["()", "(())", "(("],
    "colours": ["red blue", "red"],
}


@pytest.mark.parametrize("name", READ)
def test_many_inputs_are_read_and_shown_as_each_is(name: str) -> None:
    task, texts = TASKS[name], READ[name]
    groups = task.parse_all(texts)
    assert sorted(place for places, _ in groups for place in places) == list(range(len(texts)))
    for places, examples in groups:
        for row, (place, shown) in enumerate(zip(places, task.show_all(examples), strict=True)):
            alone, one = task.parse(texts[place]), examples[slice(row, row + 1)]
            assert all(map(torch.equal, alone.inputs, one.inputs))
            assert torch.equal(alone.targets, one.targets)
            assert shown == task.show(alone)
    with pytest.raises(InputError):
        task.parse_all([*texts, "?"])


DIGITS = [chr(code) for code in range(0x80, 0x110000) if chr(code).isdigit()]
"""Beyond ASCII: of other scripts, raised, in circles."""


@pytest.mark.parametrize("written", ["sums", "lists", "brackets"])
def test_digits_are_those_of_ascii(written: str) -> None:
    """In inputs of every task, in names of examples and of heads."""
    task = TASKS[written]
    for digit in DIGITS:
        for text in (f"{digit}+1", f"1+{digit}", f"1 {digit}", f"test:{digit}"):
            with pytest.raises(InputError):
                read_example(task, 0, text)
        with pytest.raises(LabError, match="is not the name of a head"):
            parse_head(f"encoder.{digit}.self.0")
        with pytest.raises(SpecError, match="must be a number"):
            read_variant(PositionSpec, f"rotary:base={digit}")


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("sign", "0 +,\u00a0\t-")
def test_reading_takes_time_in_proportion_to_the_text(name: str, sign: str) -> None:
    """A million signs: by an expression that goes back over n signs n times, an hour."""
    for text in (sign * 2**20, "1" + sign * 2**20 + "x", "1+" + sign * 2**20 + "1x"):
        with pytest.raises(InputError):
            TASKS[name].parse(text)
    in_page(name, "1" + sign * 2**16 + "x" + sign * 2**16)


def test_known_answers_beyond_the_limit_stay_out_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.drawn.KNOWN", 10)
    reader = TASKS["brackets"].reader()
    assert reader.facts["known"] == ""
    run = V8(python=source("python.js"), reader=reader.source)
    found = run.call("((text, facts) => reader.read(text, facts, python))", "()", reader.facts)
    assert (found["value"]["truth"], found["value"]["tokens"]) == (None, [0, 1])


def test_python_in_javascript_reads_and_writes_text_as_python_does() -> None:
    run = V8(python=source("python.js"))

    @given(st.text(PRINTED, max_size=20))
    def alike(text: str) -> None:
        made = run.call("((text) => [python.strip(text), python.split(text), python.repr(text)])", text)
        assert made["value"] == [text.strip(), text.split(), repr(text)]

    alike()
    for text in ("'" * 300, "\x1b" * 60, "\U0001f600" * 198, "\U0001f600" * 199, "ab" * 4000):
        assert run.call("python.brief", text)["value"] == brief(text)
        assert run.call("python.shortened", text)["value"] == shortened(text, ECHOED)
    spaces = "".join(chr(code) for code in range(0x3100) if chr(code).isspace())
    assert run.call("python.strip", spaces)["value"] == ""
    numbers = [0, 999, 1000, 16_384, 1_234_567]
    assert run.call("((numbers) => numbers.map(python.grouped))", numbers)["value"] == [
        f"{n:,}" for n in numbers
    ]
