"""What the doctor reads off the log of a training, and off gradients, weights and data."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import attnlab as al
from attnlab.doctor import examples, gradients, paths, rates, training_log
from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.faults import FAULTS
from attnlab.doctor.findings import Diagnosis, Finding
from attnlab.doctor.patient import Patient
from attnlab.models import build_for
from attnlab.runs import RunFolder, save_weights
from attnlab.sets import Examples
from attnlab.specs import AdamW, Spec
from commands import attnlab
from sick_runs import SPEC, learning, run_with_log, with_training

LOG = (*rates.FAULTS, *training_log.FAULTS)


def read(run: RunFolder, faults: Any = LOG) -> Diagnosis:
    return diagnose(Patient(run.name, run=run), faults=faults)


def found_in(tmp_path: Path, **lines: Any) -> dict[str, Finding]:
    return {each.kind: each for each in read(run_with_log(tmp_path / "run", **lines)).findings}


def zigzag(x: float) -> float:
    return 0.5 + 0.2 * (-1) ** round(100 * x)


def test_a_training_that_converged_has_no_fault(tmp_path: Path) -> None:
    assert found_in(tmp_path, loss=learning(8), train=lambda _: 0.99, valid=lambda _: 0.99) == {}


def test_a_training_that_converged_to_little_is_no_matter_of_rate(tmp_path: Path) -> None:
    assert found_in(tmp_path, loss=learning(20, low=0.5)) == {}


def test_a_rate_that_is_too_low_is_found(tmp_path: Path) -> None:
    found = found_in(tmp_path, loss=learning(0.5, low=0.0))
    assert list(found) == ["rate-too-low"]
    finding = found["rate-too-low"]
    assert finding.evidence["learning rate"] == 0.002
    assert finding.remedy.settings == {"training.lr": 0.006}
    assert finding.remedy.command == f"attnlab train --spec {tmp_path}/run/spec.json --training.lr 0.006"
    assert finding.curve is not None
    assert len(finding.curve.x) == 100


def test_a_loss_that_never_moved_is_found(tmp_path: Path) -> None:
    found = found_in(tmp_path, loss=lambda _: 0.69)
    assert list(found) == ["loss-stuck"]
    assert found["loss-stuck"].evidence == pytest.approx(
        {"loss at the beginning": 0.69, "loss at the end": 0.69}
    )


def test_a_loss_that_jumps_is_no_low_rate(tmp_path: Path) -> None:
    assert "rate-too-low" not in found_in(tmp_path, loss=lambda x: zigzag(x) * (1 - x / 2))


def test_weights_that_hardly_moved_are_a_low_rate(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=learning(20, low=0.5))
    torch.manual_seed(SPEC.seed)
    weights = build_for(SPEC).state_dict()
    save_weights(run, "best", {name: 1.02 * weight for name, weight in weights.items()})
    (finding,) = read(run).findings
    assert finding.kind == "rate-too-low"
    assert finding.evidence == pytest.approx(
        {"median distance of a matrix from its first value": 0.02, "learning rate": 0.002}, rel=1e-4
    )


def test_a_rate_that_is_too_high_is_found(tmp_path: Path) -> None:
    found = found_in(tmp_path, loss=lambda x: 0.7 - x if x < 0.3 else 0.4 + 3 * (x - 0.3))
    assert list(found) == ["rate-too-high"]
    assert found["rate-too-high"].severity == "serious"
    assert found["rate-too-high"].remedy.settings == {
        "training.lr": 0.00067,
        "training.schedule": "cosine:warmup=0.1",
    }


def test_jumps_of_the_loss_are_a_high_rate(tmp_path: Path) -> None:
    found = found_in(tmp_path, loss=lambda x: 2.8 if abs(x - 0.61) < 0.004 else 0.7 - 0.3 * x)
    assert list(found) == ["rate-too-high"]
    assert found["rate-too-high"].evidence["largest jump"] == pytest.approx(5.4, abs=0.2)


def test_a_schedule_that_ends_early_is_found(tmp_path: Path) -> None:
    found = found_in(tmp_path, loss=learning(20, low=0.5), lr=lambda x: 1.0 if x <= 0.5 else 0.01)
    assert list(found) == ["schedule-ends-early"]
    assert found["schedule-ends-early"].evidence["share of steps"] == pytest.approx(0.5)


def test_memorising_is_found(tmp_path: Path) -> None:
    found = found_in(tmp_path, loss=learning(9), train=lambda x: 0.5 + x / 2, valid_loss=lambda x: 0.6 + x)
    assert found["memorising"].severity == "serious"
    assert found["memorising"].evidence["validation accuracy"] == 0.6
    assert found["memorising"].remedy.settings == {"task.train": 10_000}


def test_weights_kept_by_the_wrong_measure_are_found(tmp_path: Path) -> None:
    found = found_in(
        tmp_path,
        loss=learning(9),
        valid_loss=lambda x: 0.5 + x,
        valid=lambda x: 0.5 + 0.3 * x,
        train=lambda _: 0.7,
    )
    assert list(found) == ["kept-by-wrong-metric"]
    assert found["kept-by-wrong-metric"].evidence == pytest.approx(
        {"accuracy of the kept weights": 0.53, "best accuracy": 0.8}
    )


def test_weights_that_were_kept_at_the_highest_loss_are_found(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=learning(9), valid=lambda x: x, train=lambda _: 0.7)
    lines = [json.loads(line) for line in run.file("metrics.jsonl").read_text().splitlines()]
    for line in lines:
        if line["event"] == "epoch":
            line["best"] = line["epoch"] == 1
    run.write({"metrics.jsonl": "".join(json.dumps(line) + "\n" for line in lines).encode()})
    first = read(run).findings[0]
    assert (first.kind, first.severity, first.from_start) == ("kept-by-wrong-metric", "serious", True)
    assert first.evidence == pytest.approx({"accuracy of the kept weights": 0.1, "best accuracy": 1.0})


def test_a_difference_that_chance_makes_is_no_reason_to_keep_others(tmp_path: Path) -> None:
    lines = {"loss": learning(9), "valid_loss": lambda x: 0.5 + x, "train": lambda _: 0.7}
    assert "kept-by-wrong-metric" not in found_in(tmp_path, valid=lambda x: 0.5 + 0.2 * x, **lines)


def test_a_loss_that_rises_far_above_that_of_knowing_nothing_is_found(tmp_path: Path) -> None:
    def mountain(x: float) -> float:
        return 0.69 + 1.5 * max(0.0, 1 - abs(x - 0.5) / 0.3)

    found = found_in(tmp_path, loss=mountain)
    assert next(iter(found)) == "rate-too-high"
    evidence = found["rate-too-high"].evidence
    assert evidence["highest loss over that of knowing nothing"] == pytest.approx(2.98, abs=0.01)
    assert evidence["largest jump"] < 3
    assert "rate-too-high" not in found_in(tmp_path / "low", loss=lambda x: mountain(x) / 2)


def test_a_small_gap_between_training_and_validation_is_a_note(tmp_path: Path) -> None:
    def severity(train: float, loss: float) -> str:
        run = tmp_path / f"{train} {loss}"
        lines = {"train": lambda _: train, "valid_loss": lambda x: 0.5 + loss * x}
        found = found_in(run, valid=lambda _: 0.6, loss=learning(9), **lines)
        return found["memorising"].severity

    assert severity(0.9, 0.1) == "note"
    assert severity(1.0, 0.1) == "warning"  # nothing is left to be learned
    assert severity(0.9, 1.0) == "serious"


def test_a_training_that_has_not_ended_is_not_judged_by_its_end(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=learning(0.5, low=0.0), ended=False, until=0.5)
    found = read(run)
    assert found.kinds == []
    reasons = {each.kind: each.reason for each in found.unchecked}
    assert reasons == dict.fromkeys(
        ("rate-too-low", "loss-stuck", "schedule-ends-early"),
        "the training has not ended, so its end cannot be judged",
    )
    assert {each.outcome for each in found.checks} == {"clear", "unchecked"}


def test_a_short_log_has_no_shape(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=learning(1), ended=False, until=0.08)
    assert {each.reason for each in read(run).unchecked} >= {
        "the log holds 8 windows of steps, and 10 are needed"
    }


def test_what_a_run_lacks_is_named(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=learning(1))
    run.file("metrics.jsonl").unlink()
    run.file("best.safetensors").unlink()
    found = al.diagnose(run)
    reasons = {each.kind: each.reason for each in found.unchecked}
    assert reasons["memorising"] == "the run has no metrics.jsonl"
    assert "has no best.safetensors" in reasons["scale-missing"]
    outcomes = {each.kind: each.outcome for each in found.checks}
    assert outcomes["splits-overlap"] == outcomes["initial-loss-high"] == "clear"


# Gradients and weights


def with_weights(tmp_path: Path, spec: Spec, **changes: float) -> RunFolder:
    """A run whose kept weights are the first ones with those of the given names multiplied."""
    run = run_with_log(tmp_path / "run", loss=learning(20, low=0.5), spec=spec)
    torch.manual_seed(spec.seed)
    weights = {
        name: weight + 0.01 * torch.randn_like(weight)
        for name, weight in build_for(spec).state_dict().items()
    }
    torch.manual_seed(spec.seed)
    first = build_for(spec).state_dict()
    for name, factor in changes.items():
        weights[name.replace("__", ".")] = factor * first[name.replace("__", ".")]
    save_weights(run, "best", weights)
    return run


def test_matrices_that_never_moved_are_found(tmp_path: Path) -> None:
    moved = read(with_weights(tmp_path / "a", SPEC), gradients.FAULTS)
    assert "parameters-frozen" not in moved.kinds
    kept = {"encoder__0__self__query__weight": 1.0, "readout__weight": 0.9}
    decayed = with_training(optimiser=AdamW(weight_decay=0.1))
    run = with_weights(tmp_path / "b", decayed, **kept)
    (found,) = (each for each in read(run, gradients.FAULTS).findings if each.kind == "parameters-frozen")
    assert found.text.endswith("encoder.0.self.query.weight, readout.weight")
    assert (found.severity, found.confidence) == ("serious", 0.9)
    assert found.evidence["share of them that the loss depends on"] == 1
    (only,) = read(with_weights(tmp_path / "c", SPEC, **kept), gradients.FAULTS).findings
    assert only.text == "1 of 8 matrices did not move: encoder.0.self.query.weight"


def test_a_clip_that_is_always_reached_is_found(tmp_path: Path) -> None:
    run = with_weights(tmp_path / "a", with_training(clip=1e-6))
    assert "clipped-mostly" in read(run, gradients.FAULTS).kinds
    run = with_weights(tmp_path / "b", with_training(clip=1e6))
    assert "clipped-mostly" not in read(run, gradients.FAULTS).kinds
    run = with_weights(tmp_path / "c", with_training(clip=0.0))
    outcomes = {each.kind: each.outcome for each in read(run, gradients.FAULTS).checks}
    assert outcomes["clipped-mostly"] == "inapplicable"


def test_units_that_are_dead_are_found(tmp_path: Path) -> None:
    run = with_weights(tmp_path, SPEC)
    model = run.model
    with torch.no_grad():
        model.get_parameter("encoder.0.feed.up.bias").fill_(-1e6)
    found = read(run, gradients.FAULTS)
    assert [each.evidence for each in found.findings if each.kind == "units-dead"] == [
        {"share at encoder.0.feed.hidden": 1.0}
    ]
    assert [(f.confidence, f.from_start) for f in found.findings if f.kind == "units-dead"] == [
        (0.45, False)
    ]


def test_a_way_through_that_training_killed_is_a_matter_of_rate(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=lambda _: 0.69)
    weights = {name: weight.clone() for name, weight in build_for(SPEC).state_dict().items()}
    weights["readout.weight"].zero_()
    save_weights(run, "best", weights)
    (finding,) = read(run, [paths.InputIgnored]).findings
    assert finding.text == "no logit depends on the input any more: the first weights let it through"
    assert finding.remedy.settings == {"training.lr": 0.00067, "training.schedule": "cosine:warmup=0.1"}
    assert read(run, FAULTS).kinds[0] == "constant-predictor"


def test_a_loss_that_begins_high_is_found(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=learning(1))
    patient = Patient("run", run=run)
    with torch.no_grad():
        patient.fresh.get_parameter("readout.weight").mul_(300)
    found = diagnose(patient, faults=[gradients.InitialLossHigh])
    assert found.kinds == ["initial-loss-high"]
    assert found.findings[0].evidence["log V"] == pytest.approx(0.6931, abs=1e-4)


# Data


def looked_at(train: Examples, valid: Examples) -> Diagnosis:
    return diagnose(
        Patient("data", model=build_for(SPEC), examples=valid, training=train), faults=examples.FAULTS
    )


def rows(first: int, count: int) -> Examples:
    """Rows of three numbers that differ from row to row, in two classes."""
    numbers = torch.arange(first, first + count)
    return Examples((torch.stack((numbers // 10, numbers % 10, numbers % 7), dim=1),), numbers % 2)


def test_healthy_data_has_no_fault() -> None:
    assert looked_at(rows(0, 61), rows(61, 30)).kinds == []


def test_examples_in_both_splits_are_found() -> None:
    found = looked_at(rows(0, 61), rows(41, 40))
    assert found.kinds == ["splits-overlap"]
    assert found.findings[0].evidence == {"share of validation examples": 0.5, "share by chance": 0}
    assert found.findings[0].severity == "serious"


def test_examples_that_are_the_same_by_chance_are_a_note() -> None:
    chance = torch.Generator().manual_seed(3)
    train, valid = (torch.randint(97, (count, 1), generator=chance) for count in (211, 53))
    found = looked_at(*(Examples((each,), each[:, 0] % 2) for each in (train, valid)))
    (overlap,) = (each for each in found.findings if each.kind == "splits-overlap")
    assert overlap.severity == "note"
    assert overlap.evidence["share by chance"] == pytest.approx(0.87, abs=0.1)


def test_answers_that_never_occur_in_training_are_found() -> None:
    valid = rows(61, 30)
    found = looked_at(rows(0, 61), replace(valid, targets=torch.arange(30) % 3))
    assert found.kinds == ["answer-unseen"]
    assert "answers 2 are asked for" in found.findings[0].text


def test_classes_that_are_skewed_are_found() -> None:
    train = rows(0, 61)
    found = looked_at(replace(train, targets=(torch.arange(61) == 60).long()), rows(61, 30))
    assert found.kinds == ["classes-skewed"]
    assert found.findings[0].evidence["share of the most frequent class"] == pytest.approx(60 / 61)


def test_inputs_that_are_not_scaled_are_found() -> None:
    pixels = Examples((torch.rand(7, 4, 4) * 255,), torch.arange(7) % 2)
    other = Examples((torch.rand(9, 4, 4) * 255,), torch.arange(9) % 2)
    assert looked_at(other, pixels).kinds == ["inputs-unscaled"]


# The command


def test_the_command_says_it_and_its_exit_code_tells(tmp_path: Path) -> None:
    run_with_log(tmp_path / "run", loss=learning(0.5, low=0.0))
    done = attnlab("doctor", "run", "--json", "--out", "pictures", cwd=tmp_path, code=1)
    found = json.loads(done.stdout)
    first = next(each for each in found["findings"] if each["kind"] == "rate-too-low")
    assert first.keys() >= {"kind", "severity", "confidence", "evidence", "remedy"}
    assert (tmp_path / "pictures/doctor-rate-too-low.svg").exists()
    shown = attnlab("doctor", "zoo:sorter", cwd=tmp_path)
    assert shown.stdout.startswith("zoo:sorter: nothing found")


def test_a_loss_of_exactly_zero_is_no_error(tmp_path: Path) -> None:
    found = found_in(tmp_path, loss=lambda x: 2.0 if x > 0.9 else 0.0)
    assert found["rate-too-high"].evidence["largest jump"] > 1e9
