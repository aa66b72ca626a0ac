"""The explorer tells what the doctor found: the diagnosis that a run keeps, or one that is made there."""

import math
from pathlib import Path

import pytest
import torch

import attnlab as al
from attnlab.doctor.findings import Check, Curve, Diagnosis, Finding, Remedy
from attnlab.explorer.bench import Bench
from attnlab.explorer.findings import diagnosis_form
from attnlab.explorer.handout import prepare
from attnlab.explorer.jobs import StoppedError
from attnlab.explorer.messages import pack, write_frame
from sick_runs import run_with_log

FOUND = Finding(
    kind="heads-uniform",
    severity="warning",
    confidence=0.8,
    family="attention",
    source="probe",
    text="every head of encoder.0.self gives all keys the same weight",
    evidence={"entropy": 0.9999, "loss": math.nan},
    remedy=Remedy("try another rate", "attnlab train", "lr = 0.1"),
    curve=Curve("step", "loss", [1.0, 2.0], {"training": [0.5, math.inf]}),
)
CHECKS = [
    Check("heads-uniform", "attention", "probe", "found"),
    Check("heads-dead", "attention", "probe", "unchecked", "the model fails"),
    Check("units-dead", "optimisation", "probe", "unchecked", "the model fails"),
    Check("padding-seen", "attention", "probe", "clear"),
]
DIAGNOSIS = Diagnosis(run="planted", findings=[FOUND], checks=CHECKS, seconds=0.5)


def test_a_diagnosis_travels_with_its_evidence() -> None:
    form = diagnosis_form(DIAGNOSIS)
    (finding,) = form.findings
    assert finding.evidence == [("entropy", 0.9999), ("loss", None)]
    assert finding.curve is not None
    assert finding.curve.lines[0].values == [0.5, None]
    assert (finding.remedy, finding.command, finding.code) == (
        "try another rate",
        "attnlab train",
        "lr = 0.1",
    )
    assert finding.source == "a probe of the model"
    assert finding.why.startswith("A head chooses by")
    assert form.checked.startswith("4 kinds of fault were looked for: 1 found, 1 clear, 2 could not")
    assert form.unchecked == [("heads-dead, units-dead", "the model fails")]
    assert write_frame({"value": form})  # JSON without NaN
    assert pack(form)[0]["findings"][0]["kind"] == "heads-uniform"


def test_a_run_tells_what_it_keeps_and_keeps_what_is_found(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=lambda _: 0.69)
    bench, told = Bench.of_run(run), list[tuple[int, int]]()
    assert bench.describe().abilities.findings
    assert bench.findings() is None
    made = bench.diagnose(lambda done, total: told.append((done, total)))
    assert "loss-stuck" in [each.kind for each in made.findings]
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] > 40
    assert bench.findings() == made
    kept = al.load(run.path).diagnose()
    assert [each.kind for each in made.findings] == kept.kinds


def test_a_wrapped_model_is_diagnosed_with_its_examples() -> None:
    torch.manual_seed(3)
    layer = torch.nn.TransformerEncoderLayer(12, 3, dim_feedforward=7, batch_first=True)
    model = al.wrap(layer, inputs=[torch.zeros(1, 5, 12)], output=lambda given: given.mean(dim=1))
    given = torch.randn(11, 5, 12)
    bench = Bench.of_model(model, al.examples(given, model(given).argmax(dim=-1)))
    assert bench.findings() is None
    made = bench.diagnose()
    assert made.checked.split(":")[0].endswith("kinds of fault were looked for")
    assert bench.findings() == made


def test_a_diagnosis_is_a_job_that_can_be_cancelled(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=lambda _: 0.69)
    bench = Bench.of_run(run)

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise StoppedError("enough")

    with pytest.raises(StoppedError):
        bench.diagnose(stop)
    assert bench.findings() is None


def test_a_handout_carries_what_was_kept_when_it_was_written(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=lambda _: 0.69)
    able = prepare(run, answers=2).data["subject"]["abilities"]
    assert able["findings"] is False
    made = Bench.of_run(run).diagnose()
    data = prepare(run, answers=2).data
    assert data["subject"]["abilities"]["findings"] is True
    assert data["findings"] == pack(made)[0]
