"""A hand-out carries a model that answers as torch does; what does not is never written."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import attnlab
from attnlab import registry, task
from attnlab.defaults import default_spec
from attnlab.errors import InputError, LabError, StorageError
from attnlab.explorer import handout, javascript, reference
from attnlab.explorer.bench import Bench
from attnlab.explorer.edits import Off, Scale, Swap
from attnlab.explorer.handout import Prepared, prepare
from attnlab.explorer.javascript import JavaScript
from attnlab.explorer.messages import pack
from attnlab.explorer.reference import TOLERANCE, compare, floats
from attnlab.explorer.scene import ExampleInput, Input, Question, TextInput, Want
from attnlab.explorer.stored import _spread
from attnlab.explorer.weights import PackedWeights, unpack
from attnlab.explorer.weights import pack as pack_weights
from attnlab.front.loading import load
from attnlab.runs import RunFolder
from attnlab.specs import CNNModel
from commands import attnlab as command
from commands import complaint
from tiny_digits import untrained, untrained_digits
from tiny_runs import train_four

pytest.importorskip("py_mini_racer")


@task(symbols="<>", classes=["<script>alert(1)</script>", "&amp;"])
def leading(rng: Random, length: int = 5) -> tuple[str, str]:
    """Whether <b>the first</b> symbol is </script><script>alert(2)//."""
    row = "".join(rng.choices("<>", k=rng.randint(1, length)))
    return row, "&amp;" if row[0] == ">" else "<script>alert(1)</script>"


OWN = registry._tasks.pop("leading")  # other tests know it not


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    folder = tmp_path_factory.mktemp("runs")
    found = train_four(folder)
    registry._tasks["leading"] = OWN
    spec = default_spec(leading(train=20, valid=10, test=10))
    found["own"] = untrained(folder / "own", spec)
    found["cnn"] = untrained_digits(folder / "cnn", CNNModel(filters=3, kernel=5))
    registry._tasks.pop("leading")
    return found


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tasks", {**registry._tasks, "leading": OWN})


@pytest.fixture(scope="module")
def made(runs: dict[str, RunFolder]) -> dict[str, Prepared]:
    registry._tasks["leading"] = OWN
    found = {name: prepare(run) for name, run in runs.items()}
    registry._tasks.pop("leading")
    return found


NAMES = ("adder", "sorter", "digit", "grid", "own", "cnn")


@pytest.mark.parametrize("name", NAMES)
def test_the_model_in_the_page_answers_as_torch(name: str, made: dict[str, Prepared]) -> None:
    found = made[name]
    steps = list[tuple[int, int]]()
    away = compare(found.reference, found.script, found.data, progress=lambda *step: steps.append(step))
    assert away <= TOLERANCE
    assert steps[-1] == (len(found.reference), len(found.reference))


def test_one_changed_weight_is_found(made: dict[str, Prepared]) -> None:
    found = made["adder"]
    weights = floats(found.reference.inputs.model.state_dict())
    weights["readout.bias"] = weights["readout.bias"].clone()
    weights["readout.bias"][3] += 0.01
    data = {**found.data, "weights": pack_weights(weights, found.bits).to_json()}
    refused = r"logits are up to 0\.01 away, where 0\.001 is allowed; nothing was written"
    with pytest.raises(LabError, match=refused):
        compare(found.reference, found.script, data)


@pytest.mark.parametrize("name", ["adder", "digit"])
def test_a_wrong_kernel_is_found(name: str, made: dict[str, Prepared]) -> None:
    found = made[name]
    script = found.script.replace("Math.exp(data[i] - most)", "Math.exp(0.9 * (data[i] - most))")
    assert script != found.script
    with pytest.raises(LabError, match="the model in the page answers"):
        compare(found.reference, script, found.data)


def test_weights_that_no_number_of_bits_carries_are_refused(
    made: dict[str, Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "ROUNDING", 0.0)
    with pytest.raises(LabError, match="with weights of 24 bits, the most that a page carries, logits are"):
        reference.fewest_bits(made["sorter"].reference)


def test_more_bits_are_taken_where_fewer_are_too_far_away(
    made: dict[str, Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for limit in (1e-1, 1e-6):
        monkeypatch.setattr(reference, "ROUNDING", limit)
        found[limit] = reference.fewest_bits(made["digit"].reference)
    assert found[1e-1] == 16 < found[1e-6]


def test_nothing_is_written_where_the_page_is_wrong(
    runs: dict[str, RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "TOLERANCE", 0.0)
    with pytest.raises(LabError, match="nothing was written"):
        load(runs["sorter"]).handout(tmp_path / "sorter.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_connects_to_nothing(name: str, made: dict[str, Prepared]) -> None:
    page = made[name].page()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert not {"connect-src", "worker-src", "frame-src", "font-src", "object-src"} & rules.keys()
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert rules["script-src"] == f"{_hash(script)} 'wasm-unsafe-eval'"
    assert rules["style-src"] == _hash(style)
    assert not re.search(r"""\b(src|href)\s*=\s*["'](?!#)""", page[: page.index("<style>")])
    assert "fetch(" not in script
    assert "WebSocket(" not in script


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_names_are_text_and_never_code(made: dict[str, Prepared]) -> None:
    found = made["own"]
    page = found.page()
    assert page.count("<script") == page.count("</script") == 2
    assert "<title>Whether &lt;b&gt;the first&lt;/b&gt; symbol is &lt;/script&gt;" in page
    (data,) = re.findall(r'<script type="application/json" id="handout">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data) == json.loads(json.dumps(found.data))


def test_a_script_does_not_end_before_its_end() -> None:
    text = handout._inside_html("const a = '</script><!--'; /* </SCRIPT */")
    assert not re.search(r"</script|<!--", text, re.IGNORECASE)


def test_the_same_run_gives_the_same_bytes(runs: dict[str, RunFolder], made: dict[str, Prepared]) -> None:
    assert prepare(load(runs["adder"])).page() == made["adder"].page()


def test_the_file_is_written_and_described(runs: dict[str, RunFolder], tmp_path: Path) -> None:
    file = tmp_path / "new" / "adder.html"
    found = load(runs["adder"]).handout(file)
    assert (found.run, found.file, found.bytes) == ("adder", str(file), file.stat().st_size)
    assert found.bits in (16, 18, 20, 24)
    assert found.examples == 7
    assert found.difference <= found.tolerance == 1e-3
    assert file.read_text().startswith("<!doctype html>")
    assert [each.name for each in file.parent.iterdir()] == ["adder.html"]


def test_the_command_writes_the_same(runs: dict[str, RunFolder], tmp_path: Path) -> None:
    file = tmp_path / "sorter.html"
    printed = command("handout", str(runs["sorter"].path), "--out", str(file), cwd=tmp_path).stdout
    assert f"{file}: {file.stat().st_size:,} bytes, weights of 1" in printed
    assert "12 examples are answered as by torch, with logits at most" in printed


def test_what_cannot_be_written_is_refused(
    runs: dict[str, RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load(runs["sorter"])
    with pytest.raises(InputError, match=r"out is empty; name a file that ends in \.html"):
        run.handout("")
    with pytest.raises(InputError, match=r"it must end in \.html"):
        run.handout(tmp_path / "page.txt")
    (tmp_path / "taken.html").mkdir()
    with pytest.raises(StorageError, match="it is a folder"):
        run.handout(tmp_path / "taken.html")
    with (
        run.without("encoder.0.self.0"),
        pytest.raises(InputError, match=r"handout\(\) works on saved"),
    ):
        run.handout(tmp_path / "page.html")
    monkeypatch.setattr(javascript, "INSTALLED", False)
    with pytest.raises(LabError, match=r"mini-racer, which is not installed; install it with: pip install"):
        run.handout(tmp_path / "page.html")
    assert "must end in .html" in complaint("handout", "zoo:adder", "--out", "page.htm", cwd=tmp_path)


def test_a_wrapped_model_cannot_run_in_a_page(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 11, batch_first=True)
    with pytest.raises(LabError, match="only models that attnlab builds can run in a page without Python"):
        attnlab.wrap(layer).handout(tmp_path / "page.html")


def test_a_reader_that_cannot_be_bundled_is_refused() -> None:
    reader = replace(attnlab.spec("sorting").task.reader(), source="export default 3;\n")
    with pytest.raises(LabError, match="the reader of the task cannot be bundled"):
        handout._script(reader)


def test_errors_of_a_script_are_sentences() -> None:
    with pytest.raises(LabError, match="too bad"):
        JavaScript("").call("() => { throw new Error('too bad') }")


class Page:
    """A hand-out in V8, asked through its port."""

    def __init__(self, made: Prepared) -> None:
        self.script = JavaScript(made.script)
        self.script.call(
            "(data) => { globalThis.opened = attnlab.unpacked(data, reader); return null; }", made.data
        )

    def ask(self, method: str, *given: Any) -> Any:
        """What the port's method gives; arrays of numbers are plain."""
        arguments = ", ".join(json.dumps(each) for each in given)
        self.script.run(
            f"var got = {{}}; opened.port.{method}({arguments}).then((value) => got = {{ value }}, "
            "(error) => got = { error: error.message })"
        )
        found = self.script.call(
            "() => JSON.parse(JSON.stringify(got, (key, value) => "
            "ArrayBuffer.isView(value) ? Array.from(value) : value))"
        )
        return found if "error" in found else found["value"]


@pytest.fixture(scope="module")
def pages(made: dict[str, Prepared]) -> dict[str, Page]:
    return {name: Page(each) for name, each in made.items()}


def question(given: Input, *edits: Any, other: Input | None = None) -> Question:
    return Question(given, other, tuple(edits), None, Want(True, True, None))


def close(values: Any, array: Any) -> None:
    """The numbers of JavaScript beside those of Python."""
    assert values["shape"] == list(array.shape)
    np.testing.assert_allclose(np.array(values["data"]).reshape(array.shape), array, atol=2e-4)


SITE = "encoder.0.self"
EDITS: tuple[Any, ...] = (
    *(Off(at, to) for at in (f"{SITE}.1", "encoder.0.feed") for to in ("zero", "mean", "resample")),
    Scale(SITE, 0.3),
    Swap("encoder.0"),
)


@pytest.mark.parametrize("name", ["adder", "sorter", "digit", "grid"])
def test_a_scene_in_the_page_is_that_of_python(
    name: str, runs: dict[str, RunFolder], pages: dict[str, Page]
) -> None:
    bench, indices = Bench.of_run(load(runs[name])), (0, 3)
    first, other = (ExampleInput("test", index) for index in indices)
    questions = [question(first), *(question(first, edit, other=other) for edit in EDITS)]
    for each in questions:
        wanted, found = bench.look(each), pages[name].ask("ask", _json(each))
        assert "error" not in found, (each, found)
        assert found["input"]["name"] == wanted.input.name
        assert found["input"]["truth"] == wanted.input.truth
        assert found["labels"] == json.loads(json.dumps(vars(wanted.labels)))
        assert (found["answer"]["text"], found["answer"]["correct"]) == (
            wanted.answer.text,
            wanted.answer.correct,
        )
        assert found["answer"]["probability"] == pytest.approx(wanted.answer.probability, abs=2e-4)
        assert [token["label"] for token in found["answer"]["tokens"]] == [
            token.label for token in wanted.answer.tokens
        ]
        for path, values in wanted.patterns.items():
            close(found["patterns"][path], values.array)
        for one, guess in zip(found["guesses"], wanted.guesses, strict=True):
            assert one["path"] == guess.path
            close(one["values"], guess.values.array)


def _json(each: Question) -> Any:
    """A question as the page asks it."""
    plain: Any = pack(each)[0]
    return plain


@pytest.mark.parametrize(("name", "text"), [("adder", "3+9"), ("sorter", "5 7 7 9"), ("own", "><>")])
def test_what_is_typed_is_answered_as_in_python(
    name: str, text: str, runs: dict[str, RunFolder], pages: dict[str, Page]
) -> None:
    wanted = Bench.of_run(load(runs[name])).look(question(TextInput(text)))
    found = pages[name].ask("ask", _json(question(TextInput(text))))
    assert (found["input"]["name"], found["answer"]["text"]) == (wanted.input.name, wanted.answer.text)
    assert (found["input"]["truth"], found["answer"]["correct"]) == (
        wanted.input.truth,
        wanted.answer.correct,
    )


def test_what_cannot_be_read_is_a_sentence(pages: dict[str, Page]) -> None:
    ask = pages["adder"].ask
    wrong = {"text": "3+99"}
    empty: dict[str, Any] = {"other": None, "edits": [], "snapshot": None, "want": {}}
    assert ask("ask", {**empty, "input": wrong})["error"].startswith("99 is outside 0 to 9")
    image = {"pixels": {"shape": [1, 2, 2], "data": [0, 0, 0, 0]}}
    assert ask("ask", {**empty, "input": image})["error"] == "inputs of the task 'addition' are no images"
    assert pages["digit"].ask("ask", {**empty, "input": image})["error"] == (
        "the image is 1 x 2 x 2; it must be 1 x 28 x 28"
    )
    assert pages["digit"].ask("ask", {**empty, "input": {"text": "7"}})["error"] == (
        "inputs of the task 'digits' cannot be written as text"
    )
    given = {"example": {"split": "test", "index": 7000}}
    assert ask("ask", {**empty, "input": given})["error"] == (
        "this file carries 7 of the 7 test examples; number 7000 is not one of them"
    )
    given = {"example": {"split": "train", "index": 0}}
    assert "no examples of 'train'; known: valid, test" in ask("ask", {**empty, "input": given})["error"]
    now = {**empty, "input": {"text": "1+2"}, "snapshot": 30}
    assert ask("ask", now)["error"] == "this file carries no snapshots of the training"
    assert ask("open", "zoo:adder")["error"].endswith("and no other run")
    assert ask("read", [])["error"] == "this model reads no pictures"
    long = {"text": " ".join(["7"] * 600)}
    assert pages["sorter"].ask("ask", {**empty, "input": long})["error"] == (
        "the input has 600 tokens; at most 512 can be explored"
    )


def test_the_subject_is_that_of_a_hand_out(pages: dict[str, Page], runs: dict[str, RunFolder]) -> None:
    (listed,) = pages["grid"].ask("list")
    subject = pages["grid"].ask("open", listed["name"])
    assert (subject["source"], subject["snapshots"]) == ("handout", [])
    assert subject["abilities"] == {
        **{"ablate": True, "explain": True, "heads": True},
        **{"pictures": True, "snapshots": False, "findings": False},
    }
    wanted = Bench.of_run(load(runs["grid"])).describe()
    assert subject["model"] == pack(wanted.model)[0]
    assert subject["task"]["input"] == "image"
    assert not pages["cnn"].ask("open", pages["cnn"].ask("list")[0]["name"])["abilities"]["ablate"]


@pytest.mark.parametrize("name", NAMES)
def test_examples_come_by_stratum(name: str, pages: dict[str, Page], runs: dict[str, RunFolder]) -> None:
    page, bench = pages[name], Bench.of_run(load(runs[name]))
    subject = page.ask("open", page.ask("list")[0]["name"])
    for split in ("valid", "test"):
        strata = subject["task"]["splits"][split]
        assert strata[0]["name"] == "all"
        for stratum in strata:
            wanted = {"split": split, "stratum": stratum["name"], "start": 0, "count": 200}
            found = page.ask("examples", wanted)
            python = bench.examples(split, stratum["name"], 0, 200)
            assert found["total"] == stratum["count"] == len(found["items"]) > 0
            known = {item.index: item for item in python.items}
            for item in found["items"]:
                one = known[item["index"]]
                assert (item["name"], item["truth"]) == (one.name, one.truth)
                assert (one.pixels is None) == (item["pixels"] is None)
                if one.pixels is not None:
                    close(item["pixels"], one.pixels.array)
    wanted = {"split": "test", "stratum": "all"}
    two = page.ask("examples", {**wanted, "start": 0, "count": 2})["items"]
    assert page.ask("examples", {**wanted, "start": 1, "count": 1})["items"] == two[1:]
    assert (
        "no stratum 'odd'; known: all"
        in (page.ask("examples", {"split": "test", "stratum": "odd", "start": 0, "count": 2})["error"])
    )


def test_as_many_examples_as_are_wanted_are_spread_over_strata() -> None:
    assert _spread([list(range(100)), [50, 60, 70], [99]], 6) == [0, 1, 2, 50, 60, 99]
    assert _spread([[1, 2]], 9) == [1, 2]


def test_weights_are_those_of_the_run(made: dict[str, Prepared], runs: dict[str, RunFolder]) -> None:
    data = made["digit"].data["weights"]
    tensors = [(name, tuple(shape)) for name, shape in data["tensors"]]
    found = unpack(PackedWeights(data["bits"], tensors, data["text"]))
    for name, tensor in load(runs["digit"]).model.state_dict().items():
        torch.testing.assert_close(found[name], tensor, atol=1e-3, rtol=0)
