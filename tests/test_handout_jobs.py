"""Analyses in a hand-out find what Python finds on the same examples."""

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from torch import Tensor

from attnlab.analysis.ablate.effects import ALL
from attnlab.analysis.choices import BaselineName
from attnlab.explorer.bench import run_inputs
from attnlab.explorer.handout import Prepared, prepare
from attnlab.explorer.javascript import JavaScript
from attnlab.front.loading import load
from attnlab.front.run import Run
from tiny_runs import train_four

pytest.importorskip("py_mini_racer")

CLOCK = (
    "var performance = { now: Date.now }; var setTimeout = (later) => void Promise.resolve().then(later);"
)
START = """(job) => {
    globalThis.got = { steps: [] };
    globalThis.running = opened.port.start(job, (done, total) => got.steps.push([done, total]));
    running.result.then((value) => got.value = value, (error) => got.error = error.message);
    return null;
}"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    found = train_four(tmp_path_factory.mktemp("runs"))
    return {name: load(run) for name, run in found.items()}


@pytest.fixture(scope="module")
def pages(runs: dict[str, Run]) -> dict[str, JavaScript]:
    return {name: page(prepare(run)) for name, run in runs.items()}


def page(made: Prepared) -> JavaScript:
    script = JavaScript(CLOCK + made.script)
    script.call("(data) => { globalThis.opened = attnlab.unpacked(data, reader); return null; }", made.data)
    return script


def work(script: JavaScript, analysis: str, **job: Any) -> Any:
    script.call(START, {"analysis": analysis, "input": None, "examples": None, "split": "valid", **job})
    found = script.call("() => got")
    return found.get("value", found.get("error"))


def numbers(cell: str) -> list[float]:
    return [float(each) for each in cell.split("±")]


@pytest.mark.parametrize("name", ["adder", "sorter", "digit", "grid"])
def test_heads_look_where_python_says(
    name: str, runs: dict[str, Run], pages: dict[str, JavaScript]
) -> None:
    wanted = {row.head: row.metrics for row in runs[name].heads(split="valid").heads}
    found = work(pages[name], "heads", examples=200)
    seen = 0
    for table in found["tables"]:
        for head, *cells in table["rows"]:
            for metric, cell in zip(table["columns"][1:], cells, strict=True):
                if (
                    metric == "distance" or "decoder" in head
                ):  # Python measures what is fed when it is right
                    continue
                assert numbers(cell)[0] == pytest.approx(wanted[head][metric].value, abs=2e-3)
                seen += 1
    assert seen >= 4


@pytest.mark.parametrize("name", ["adder", "sorter", "digit", "grid"])
def test_what_is_lost_without_a_head_is_what_python_says(
    name: str, runs: dict[str, Run], pages: dict[str, JavaScript]
) -> None:
    wanted = runs[name].ablate(baselines=["mean", "zero"], split="valid")
    found = work(pages[name], "ablate", examples=200)
    near = 0.05 if name == "grid" else 2e-4  # in a page the start token, which is never said, has no logit
    (table,) = found["tables"]
    assert f" of {wanted.examples} examples: points lost without each head" in table["title"]
    assert table["columns"] == ["head", "mean", "zero", "resample", "rise of loss"]
    assert len(table["rows"]) == len(wanted.baselines["mean"])
    single = {to: {row.head: row for row in rows} for to, rows in wanted.baselines.items()}
    for head, mean, zero, _, rise in table["rows"]:
        for to, lost in (("mean", mean), ("zero", zero)):
            assert numbers(lost)[0] == pytest.approx(100 * single[to][head].lost[ALL].value, abs=0.006)
        assert float(rise) == pytest.approx(single["mean"][head].loss_rise.value, abs=near)
    loss = float(re.findall(r"the loss is ([\d.]+\d);", found["sentences"][0])[0])
    assert loss == pytest.approx(wanted.loss, abs=near if name != "grid" else 1)


def test_what_is_resampled_is_what_the_switch_takes(
    pages: dict[str, JavaScript], runs: dict[str, Run]
) -> None:
    found = work(pages["sorter"], "ablate", examples=10)
    (table,) = found["tables"]
    row = {head: numbers(cell)[0] for head, _, _, cell, _ in table["rows"]}
    run = runs["sorter"]
    texts = [each["name"] for each in examples_of(pages["sorter"])[:10]]
    before = [run.predict(text).correct for text in texts]
    for head, lost in row.items():
        with run.changed({"op": "off", "at": head, "to": "resample"}):
            after = [run.predict(text).correct for text in texts]
        assert lost == pytest.approx(10 * (sum(map(bool, before)) - sum(map(bool, after))))


def examples_of(script: JavaScript) -> Any:
    script.call(
        """() => {
          const wanted = { split: "valid", stratum: "all", start: 0, count: 200 };
          opened.port.examples(wanted).then((found) => (globalThis.listed = found));
          return null;
        }"""
    )
    return script.call("() => listed.items")


def test_one_input_without_each_head(pages: dict[str, JavaScript], runs: dict[str, Run]) -> None:
    found = work(pages["adder"], "ablate", input={"text": "3+4"})
    (table,) = found["tables"]
    before = runs["adder"].predict("3+4").output
    assert table["title"] == f"3+4 → {before}: without each head"
    counts = []
    places: tuple[tuple[int, BaselineName], ...] = ((1, "mean"), (3, "zero"))
    for at, to in places:
        for row in table["rows"]:
            with runs["adder"].without(row[0], to=to):
                assert runs["adder"].predict("3+4").output == row[at]
        counts.append(f"{sum(row[at] != before for row in table['rows'])} towards {to}")
    assert found["sentences"][0].endswith(f"when they are switched off: {', '.join(counts)}.")
    assert labels_of(found)[1::2] == [row[0] for row in table["rows"]]


def test_edits_stay_active_in_analyses(pages: dict[str, JavaScript], runs: dict[str, Run]) -> None:
    edits = [{"op": "swap", "at": "decoder.0.cross"}]
    found = work(pages["adder"], "ablate", input={"text": "3+4"}, edits=edits, other={"text": "9+9"})
    with runs["adder"].changed(*edits, other="9+9"):
        said = runs["adder"].predict("3+4").output
    assert found["tables"][0]["title"] == f"3+4 → {said}: without each head"
    assert work(pages["adder"], "ablate", input={"text": "3+4"}, edits=edits) == (
        "to swap, another input is needed; give one as other"
    )


def labels_of(found: dict[str, Any]) -> list[str]:
    """The words of the only figure."""
    (figure,) = found["figures"]
    return [
        each.text or "" for each in ElementTree.fromstring(figure).iter("{http://www.w3.org/2000/svg}text")
    ]


def evidence(logits: Tensor, said: int) -> float:
    others = torch.cat((logits[:said], logits[said + 1 :]))
    return float(logits[said] - others.logsumexp(dim=0))


def test_a_patch_is_worth_the_evidence_that_goes_with_it(
    pages: dict[str, JavaScript], runs: dict[str, Run]
) -> None:
    inputs = run_inputs(runs["digit"])
    image = inputs.split("test")[slice(2, 3)].inputs[0]
    empty = (0.0 - inputs.scale[0]) / inputs.scale[1] if inputs.scale else 0.0
    found = work(pages["digit"], "explain", split="test", input={"example": {"split": "test", "index": 2}})
    rows = {label: float(score) for label, score in found["tables"][0]["rows"]}
    assert list(rows) == ["0,0", "0,1", "1,0", "1,1"]
    with torch.inference_mode():
        whole = runs["digit"].model(image)[0]
        said = int(whole.argmax())
        for label, score in rows.items():
            row, column = map(int, label.split(","))
            covered = image.clone()
            covered[..., 14 * row : 14 * row + 14, 14 * column : 14 * column + 14] = empty
            lost = evidence(whole, said) - evidence(runs["digit"].model(covered)[0], said)
            assert score == pytest.approx(lost, abs=0.006)
    assert labels_of(found) == ["Evidence lost without each patch", "evidence"]


def test_a_token_is_replaced_by_those_of_other_examples(pages: dict[str, JavaScript]) -> None:
    found = work(pages["sorter"], "explain", input={"text": "3 99 5"})
    (table,) = found["tables"]
    assert table["columns"] == ["token", "evidence"]
    assert [label for label, _ in table["rows"]] == ["3 (at 1)", "99 (at 2)", "5 (at 3)"]
    assert "replaced by what other examples have there" in found["sentences"][0]


def test_edits_hold_while_an_analysis_is_at_work(pages: dict[str, JavaScript]) -> None:
    off = {"op": "off", "at": "encoder.0.self", "to": "zero"}
    found = work(pages["sorter"], "ablate", examples=5, edits=[off])
    table = found["tables"][0]
    zero = table["columns"].index("zero")
    assert [row[zero] for row in table["rows"]] == ["0.00 ±0.00"] * 2  # they are off already


def test_a_job_tells_how_far_it_is_and_can_be_cancelled(pages: dict[str, JavaScript]) -> None:
    script = pages["adder"]
    work(script, "heads", examples=5)
    assert all(total == 5 and 0 < done <= 5 for done, total in script.call("() => got.steps"))
    job = {"analysis": "ablate", "input": None, "examples": 5, "split": "valid"}
    script.run(f"({START})({json.dumps(job)}); running.cancel();")
    assert script.call("() => got.error") == "the analysis was cancelled"


def test_what_cannot_be_analysed_is_a_sentence(pages: dict[str, JavaScript]) -> None:
    assert work(pages["adder"], "explain", examples=5) == "occlusion explains one input; choose this input"
    assert work(pages["adder"], "heads", input={"text": "1+"}).startswith(
        "'1+' is not a sum of two numbers"
    )
