"""A diagnosis as people see it: pictures, the page, lines in a terminal, and what a report says of it."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from attnlab.doctor.findings import Check, Curve, Diagnosis, Finding, Remedy
from attnlab.doctor.kept import keep_diagnosis, kept_diagnosis
from attnlab.figures.findings import Bars, draw_evidence, evidence_data
from attnlab.report.doctor import diagnosis_section
from attnlab.tables.doctor import WIDTH, lines
from commands import attnlab
from sick_runs import learning, run_with_log

CURVE = Curve("step", "training loss", [1.0, 2.0, 3.0], {"loss": [7.0, 5.0, 0.1]})
SLOW = Finding(
    kind="rate-too-low",
    severity="serious",
    confidence=0.7,
    family="optimisation",
    source="log",
    text="the training loss still falls as training ends, smoothly, at a rate of 0.002, which is <low>",
    evidence={"learning rate": 0.002, "loss at the end over that at the beginning": 0.63},
    remedy=Remedy("try a rate of 0.006", "attnlab train --training.lr 0.006", "lr = 0.006\nprint(lr)"),
    curve=CURVE,
)
MAJORITY = replace(
    SLOW,
    kind="majority-class",
    severity="note",
    family="evaluation",
    source="probe",
    curve=None,
    evidence={"accuracy": 0.5, "share": 0.53},
    explained_by="rate-too-low",
)
CHECKS = [
    Check("rate-too-low", "optimisation", "log", "found"),
    Check("majority-class", "evaluation", "probe", "found"),
    Check("softmax-axis", "attention", "probe", "clear"),
    Check("padding-seen", "attention", "probe", "inapplicable", "inputs have no padding"),
    Check("memorising", "data", "log", "unchecked", "the run has no metrics.jsonl"),
    Check("loss-stuck", "optimisation", "log", "unchecked", "the run has no metrics.jsonl"),
]
FOUND = Diagnosis(run="runs/slow", findings=[SLOW, MAJORITY], checks=CHECKS, seconds=1.2)
CLEAR = replace(FOUND, findings=[], checks=CHECKS[2:4])


# Pictures


def test_evidence_is_a_curve_or_bars() -> None:
    assert evidence_data(SLOW) == CURVE
    assert evidence_data(MAJORITY) == Bars(["accuracy", "share"], [0.5, 0.53], logarithmic=False)
    far = replace(MAJORITY, evidence={"a": 1.0, "b": 30.0, "c": inf})
    assert evidence_data(far) == Bars(["a", "b"], [1.0, 30.0], logarithmic=True)
    assert evidence_data(replace(MAJORITY, evidence={})) is None


def test_a_curve_is_drawn_as_lines() -> None:
    axes = draw_evidence(CURVE).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("step", "training loss", "log")
    assert axes.lines[0].get_ydata() == pytest.approx([7.0, 5.0, 0.1])


def test_numbers_are_drawn_as_bars_with_their_value() -> None:
    axes = draw_evidence(Bars(["one", "another"], [0.5, -0.25], logarithmic=False)).axes[0]
    assert [bar.get_width() for bar in axes.patches] == [0.5, -0.25]  # type: ignore[attr-defined]
    assert [text.get_text() for text in axes.texts] == ["0.5", "-0.25"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["one", "another"]


# The page


def test_the_page_has_findings_with_picture_remedy_and_example_and_a_chart(tmp_path: Path) -> None:
    (file,) = FOUND.save(tmp_path / "new/page.html")
    page = file.read_text()
    assert page.index('id="rate-too-low"') < page.index('id="majority-class"') < page.index('id="chart"')
    assert "Most likely: rate-too-low." in page
    assert "which is &lt;low&gt;" in page
    assert page.count('<figure role="img"') == 2
    assert '<pre class="command" id="code-rate-too-low-1" tabindex="0">attnlab train' in page
    assert '<pre class="program" id="code-rate-too-low-2" tabindex="0">lr = 0.006\nprint(lr)' in page
    assert "WACV 2017" in page
    assert "assert losses[0.001] &gt; 100 * losses[1.0]" in page
    assert "This is explained by another finding, rate-too-low." in page


def test_the_chart_is_read_without_colour(tmp_path: Path) -> None:
    page = FOUND.save(tmp_path / "page.html")[0].read_text()
    chart = " ".join(page[page.index('id="chart"') : page.index('id="made"')].split())
    assert '✗</span><a href="#rate-too-low">rate-too-low</a>: <span class="state">found</span>' in chart
    assert '✓</span>softmax-axis: <span class="state">clear</span>' in chart
    assert '–</span>padding-seen: <span class="state">not applicable</span>' in chart
    assert (
        '?</span>memorising: <span class="state">could not be checked</span>'
        '<span class="quiet">, the run has no metrics.jsonl</span>'
    ) in chart


def test_a_page_without_findings_says_so(tmp_path: Path) -> None:
    page = CLEAR.save(tmp_path / "page.html")[0].read_text()
    assert '<p class="proof all">Nothing found.</p>' in page
    assert "2 kinds of fault were looked for: 1 clear, 1 not applicable, in 1 s." in page
    assert "attnlab doctor" not in page  # there is no such run


def test_a_fault_of_ones_own_needs_no_explanation(tmp_path: Path) -> None:
    own = replace(SLOW, kind="of-my-own", remedy=Remedy("do better"), evidence={}, curve=None)
    page = replace(FOUND, findings=[own]).save(tmp_path / "page.html")[0].read_text()
    assert "Do better." in page
    assert "Why it happens" not in page


def test_a_folder_gets_numbers_and_pictures(tmp_path: Path) -> None:
    names = {path.name for path in FOUND.save(tmp_path / "kept")}
    pictures = {f"doctor-{each}.{end}" for each in FOUND.kinds for end in ("svg", "png", "json")}
    assert names == {"diagnosis.json", *pictures}
    kept = json.loads((tmp_path / "kept/diagnosis.json").read_text())
    assert Diagnosis.from_json(kept) == FOUND


def test_the_page_of_a_run_is_told_in_a_few_words() -> None:
    section = diagnosis_section(FOUND)
    assert section.words[0].startswith("6 kinds of fault were looked for: 2 found, 1 clear,")
    assert "By severity: 1 serious, 1 note." in section.words[1]
    assert [row[:3] for row in section.tables[0].rows] == [
        ("rate-too-low", "serious", "70%"),
        ("majority-class", "note", "70%"),
    ]
    assert list(diagnosis_section(CLEAR).words)[1:] == ["Nothing was found."]


# In a terminal


def test_lines_fit_80_columns_but_for_what_is_copied() -> None:
    said = list(lines(FOUND))
    assert said[0] == "runs/slow: 2 findings, the most likely first"
    assert said[2] == "1. rate-too-low: serious, confidence 70%"
    assert "   try: attnlab train --training.lr 0.006" in said
    assert all(len(line) <= WIDTH for line in said if not line.startswith("   try: "))
    assert "   optimisation: 1 found, 1 could not be checked" in said
    assert said[-1] == "   memorising, loss-stuck: the run has no metrics.jsonl"
    assert said.index("2. majority-class: note, confidence 70%") > said.index(said[2])
    assert next(iter(lines(CLEAR))) == "runs/slow: nothing found"


def test_lines_are_never_broken_where_they_are_copied() -> None:
    long = replace(SLOW, remedy=Remedy("so", command="attnlab train " + "--training.lr 1 " * 9))
    said = list(lines(replace(FOUND, findings=[long])))
    assert f"   try: {long.remedy.command}" in said


# The command, on runs that are not whole


def doctored(home: Path, code: int, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        attnlab("doctor", "run", "--json", *words, cwd=home, code=code).stdout
    )
    return found


def unchecked(found: dict[str, Any]) -> dict[str, str]:
    return {each["kind"]: each["reason"] for each in found["checks"] if each["outcome"] == "unchecked"}


def test_a_run_without_metrics_is_probed(tmp_path: Path) -> None:
    run_with_log(tmp_path / "run", loss=learning(8)).file("metrics.jsonl").unlink()
    found = doctored(tmp_path, 1)
    assert unchecked(found)["rate-too-high"] == "the run has no metrics.jsonl"
    assert "majority-class" in [each["kind"] for each in found["findings"]]


def test_a_run_that_was_killed_before_any_weights_were_kept_is_read(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=lambda x: 0.5 + 9 * x, ended=False, until=0.5)
    run.file("best.safetensors").unlink()
    found = doctored(tmp_path, 1)
    assert found["findings"][0]["kind"] == "rate-too-high"
    assert "softmax-axis" in unchecked(found)


def test_a_training_that_has_not_ended_keeps_no_diagnosis(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=learning(8), ended=False, until=0.5)
    keep_diagnosis(run, FOUND)
    assert kept_diagnosis(run) is None
    assert not run.file("analysis").exists()


def test_a_diagnosis_is_kept_for_these_weights_and_all_kinds(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=learning(8))
    keep_diagnosis(run, FOUND)
    assert kept_diagnosis(run) is None  # most kinds were not looked for
    found = doctored(tmp_path, 1)
    kept = kept_diagnosis(run)
    assert kept is not None
    assert kept.to_json() == found
    run.write({"best.safetensors": b"others"})
    assert kept_diagnosis(run) is None


def test_what_is_no_run_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    said = attnlab("doctor", "run", cwd=tmp_path, code=2).stderr
    assert said.count("\n") == 1
    said = attnlab("doctor", "zoo:adder", "--out", "page.pdf", cwd=tmp_path, code=2).stderr
    assert "give a file that ends in .html, or a folder" in said
