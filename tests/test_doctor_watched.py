"""What the doctor reads off a training that was watched, planted by hand and healthy beside it."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.doctor import examples, gradients, layers, order, rates, splits, steps
from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.findings import Diagnosis, Finding
from attnlab.doctor.patient import Patient
from attnlab.doctor.watched import way_at_most
from attnlab.runs import Answers, LayerSample, Observed, RunFolder, Sample
from attnlab.runs.observed import Inputs, Window
from attnlab.specs import SGD, AdamW, Cosine, Spec
from attnlab.storage import as_json
from sick_runs import SPEC, learning, run_with_log, with_training

FAULTS = (*rates.FAULTS, *steps.FAULTS, *order.FAULTS, *layers.FAULTS)
LAYERS = ("embed", "encoder.0", "encoder.1", "readout")
AT = (1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 500)
"""Sampled steps."""
ANSWERS = Answers({"0": 200, "1": 190}, {"0": 195, "1": 195}, {}, {}, 0.01)
Of = Callable[[float], float]
"""A value by the share of the training that is over."""


def watched(
    *,
    lr: Of = lambda x: min(1.0, 10 * x),
    gradient: dict[str, float] | None = None,
    weight: Of = lambda _: 20.0,
    update: Of = lambda x: 0.005 * min(1.0, 10 * x),
    inward: float = 0.1,
    answers: Answers | None = ANSWERS,
    diverged: int | None = None,
    until: int = 500,
) -> Observed:
    """A training as it would be observed, up to the step ``until``."""
    slopes = dict.fromkeys(LAYERS, 1.0) | (gradient or {})
    samples = []
    for step in (each for each in AT if each <= until):
        x = step / 500
        sizes = {name: LayerSample(slopes[name], weight(x), update(x), inward) for name in LAYERS}
        whole = math.hypot(*slopes.values())
        samples.append(Sample(step, 1 - x / 2, 0.002 * lr(x), whole, 0.0, sizes))
    losses = [Window(step, 1 - step / 1000, 1.1) for step in range(2, until, 2)]
    return Observed(
        total=500,
        steps=until,
        starts=[0],
        samples=samples,
        losses=losses,
        answers=answers,
        diverged=diverged,
    )


def run_of(tmp_path: Path, observed: Observed, **changes: Any) -> RunFolder:
    run = run_with_log(tmp_path / "run", **({"loss": learning(20, low=0.5)} | changes))
    run.write({"observed.json": as_json(observed.to_json())})
    return run


def diagnosed(tmp_path: Path, observed: Observed, **changes: Any) -> Diagnosis:
    run = run_of(tmp_path, observed, **changes)
    return diagnose(Patient(run.name, run=run), faults=FAULTS)


def only(found: Diagnosis) -> Finding:
    (finding,) = found.findings
    return finding


def test_a_healthy_training_has_no_fault(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, watched())
    assert found.findings == []
    assert {each.kind: each.outcome for each in found.checks} == {
        each.kind: "inapplicable" if each.kind == "weight-decay-wins" else "clear" for each in FAULTS
    }


def test_a_loss_that_became_infinite_is_found(tmp_path: Path) -> None:
    finding = only(diagnosed(tmp_path, watched(diverged=70, until=70)))
    assert (finding.kind, finding.severity) == ("diverged", "serious")
    assert finding.evidence == {"step": 70, "loss before it": 1 - 64 / 1000, "gradient before it": 2.0}
    assert finding.remedy.settings == {"training.lr": 0.00067, "training.schedule": "cosine:warmup=0.1"}
    assert finding.curve is not None
    assert finding.curve.x[-1] == 68


def test_a_single_loss_that_was_not_finite_is_less_grave(tmp_path: Path) -> None:
    finding = only(diagnosed(tmp_path, watched(diverged=70)))
    assert (finding.kind, finding.severity, finding.confidence) == ("diverged", "warning", 0.6)


def test_a_loss_that_never_was_finite_is_no_matter_of_the_rate(tmp_path: Path) -> None:
    finding = only(diagnosed(tmp_path, watched(diverged=1, until=1)))
    assert finding.text == "the loss was not finite at step 1, before any weight had moved"
    assert finding.remedy.settings == {}


def test_first_steps_that_are_too_large_are_a_missing_warm_up(tmp_path: Path) -> None:
    finding = only(diagnosed(tmp_path, watched(lr=lambda _: 1.0, update=lambda x: 0.08 * math.exp(-5 * x))))
    assert (finding.kind, finding.severity) == ("warm-up-missing", "warning")
    assert finding.evidence["first step over the weights"] == pytest.approx(0.08, rel=0.02)
    assert finding.remedy.settings == {"training.schedule": "cosine:warmup=0.1"}


@pytest.mark.parametrize(
    "observed",
    [
        watched(lr=lambda _: 1.0, update=lambda _: 0.01),  # at the full rate, which is small enough
        watched(update=lambda x: 0.08 * min(1.0, 10 * x)),  # warmed up
    ],
)
def test_small_or_warmed_first_steps_are_well(observed: Observed, tmp_path: Path) -> None:
    assert diagnosed(tmp_path, observed).kinds == []


def test_steps_that_cannot_get_anywhere_are_a_low_rate_long_before_the_end(tmp_path: Path) -> None:
    observed = watched(update=lambda x: 2e-4 * min(1.0, 10 * x), until=64)
    finding = only(diagnosed(tmp_path, observed, ended=False, until=0.15))
    assert (finding.kind, finding.severity, finding.confidence) == ("rate-too-low", "serious", 0.9)
    assert 436 * 2e-4 < finding.evidence["all steps over the weights"] < 500 * 2e-4
    assert finding.remedy.settings == {"training.lr": 0.04}


def test_the_way_is_the_sum_of_all_steps(tmp_path: Path) -> None:
    patient = Patient("run", run=run_of(tmp_path, watched(lr=lambda _: 1.0, update=lambda _: 3e-4)))
    assert way_at_most(patient) == pytest.approx(500 * 3e-4)


def test_steps_as_long_as_the_weights_are_a_high_rate(tmp_path: Path) -> None:
    observed = watched(update=lambda x: 0.5 * min(1.0, 10 * x), weight=lambda x: 20 * (1 + 3 * x))
    finding = only(diagnosed(tmp_path / "a", observed))
    assert (finding.kind, finding.confidence) == ("rate-too-high", 0.8)
    assert finding.text == "the first steps would move the weights by 50% of their length"
    assert finding.evidence["weights at the end over those at the beginning"] == pytest.approx(4, rel=0.01)
    both = only(diagnosed(tmp_path / "b", observed, loss=lambda x: 0.3 + x, until=0.9, ended=False))
    assert (both.kind, both.confidence) == ("rate-too-high", 0.9)
    jump = only(diagnosed(tmp_path / "c", watched(), loss=lambda x: 2.8 if abs(x - 0.61) < 0.004 else 0.6))
    assert (jump.kind, jump.confidence) == ("rate-too-high", 0.8)


def test_gradients_that_were_clipped_while_it_trained_are_counted(tmp_path: Path) -> None:
    def gravity(clip: float, optimiser: Any, name: str) -> tuple[str, float] | None:
        run = run_of(tmp_path / name, watched(), spec=with_training(clip=clip, optimiser=optimiser))
        found = diagnose(Patient("run", run=run), faults=[gradients.ClippedMostly]).findings
        return (found[0].severity, found[0].evidence["typical length"]) if found else None

    assert gravity(1e-3, SGD(), "a") == ("serious", 2.0)
    assert gravity(0.1, SGD(), "b") == ("warning", 2.0)
    assert gravity(1.0, SGD(), "c") == ("note", 2.0)
    assert gravity(0.1, AdamW(), "d") == ("note", 2.0)
    assert gravity(3.0, SGD(), "e") is None


def test_a_layer_that_no_gradient_reaches_is_frozen(tmp_path: Path) -> None:
    run = run_of(tmp_path, watched(gradient={"encoder.1": 0.0}))
    run.file("best.safetensors").unlink()
    (finding,) = diagnose(Patient("run", run=run), faults=[gradients.ParametersFrozen]).findings
    assert finding.text == "no gradient ever reached encoder.1"
    assert finding.evidence == {
        "share of matrices": 0.0,
        "share of them that the loss depends on": 0.0,
        "layers without a gradient": 1.0,
    }


def test_inputs_are_those_of_the_batches(tmp_path: Path) -> None:
    observed = replace(watched(), inputs=Inputs(127.0, 70.0, 0.6))
    patient = Patient("run", run=run_of(tmp_path, observed))
    found = diagnose(patient, faults=[examples.InputsUnscaled, splits.ExamplesRepeated])
    evidence = {each.kind: each.evidence for each in found.findings}
    assert evidence == {
        "inputs-unscaled": {"mean": 127.0, "spread": 70.0},
        "examples-repeated": {"share of repetitions": 0.6},
    }


def test_a_batch_of_half_the_examples_is_too_large(tmp_path: Path) -> None:
    spec = with_training(batch=175)
    finding = only(diagnosed(tmp_path, watched(), spec=spec))
    assert finding.kind == "batch-too-large"
    assert finding.evidence == {"share of the examples": 0.5, "steps": 20, "batch": 175}
    assert finding.remedy.settings == {"training.batch": 10}


def test_a_large_batch_with_many_steps_or_a_learned_task_is_well(tmp_path: Path) -> None:
    long = with_training(batch=175, epochs=1000)
    assert diagnosed(tmp_path / "a", watched(), spec=long).kinds == []
    learned = diagnosed(tmp_path / "b", watched(), spec=with_training(batch=175), train=lambda _: 0.99)
    assert learned.kinds == []


DECAYED = with_training(optimiser=AdamW(weight_decay=20.0))


def test_weights_that_shrink_are_the_work_of_decay(tmp_path: Path) -> None:
    observed = watched(weight=lambda x: 20 * math.exp(-6 * x), inward=0.9)
    finding = only(diagnosed(tmp_path, observed, spec=DECAYED))
    assert finding.kind == "weight-decay-wins"
    left = math.exp(-6 * 499 / 500)
    assert finding.evidence["length at the end over that at the beginning"] == pytest.approx(left)
    assert finding.evidence["weight decay"] == 20
    assert finding.remedy.settings == {"training.optimiser.weight_decay": 0.01}
    assert finding.curve is not None
    assert list(finding.curve.lines) == ["encoder.0", "encoder.1", "readout"]


def test_decay_that_makes_the_first_steps_long_is_no_high_rate(tmp_path: Path) -> None:
    long = watched(weight=lambda x: 20 * math.exp(-6 * x), update=lambda _: 3.0, inward=0.9)
    found = diagnosed(tmp_path, long, spec=DECAYED)
    assert found.kinds[0] == "weight-decay-wins"
    assert {each.explained_by for each in found.findings[1:]} <= {"weight-decay-wins"}


def test_steps_towards_zero_are_seen_before_the_weights_have_shrunk(tmp_path: Path) -> None:
    early = watched(weight=lambda x: 20 * math.exp(-4 * x), inward=0.95, until=64)
    assert diagnosed(tmp_path, early, spec=DECAYED, ended=False, until=0.2).kinds == ["weight-decay-wins"]


def test_decay_that_loses_is_well(tmp_path: Path) -> None:
    assert diagnosed(tmp_path, watched(weight=lambda x: 20 - x), spec=DECAYED).kinds == []


def test_batches_of_one_answer_are_not_shuffled(tmp_path: Path) -> None:
    finding = only(diagnosed(tmp_path, watched(answers=replace(ANSWERS, grouped=0.97))))
    assert (finding.kind, finding.severity) == ("order-not-shuffled", "serious")
    assert finding.evidence == {"share of the variation that is between batches": 0.97}


def test_an_answer_without_a_gradient_is_ignored_and_padding_may_be(tmp_path: Path) -> None:
    ignored = replace(ANSWERS, silent={"1": 190}, between={"1": 150})
    finding = only(diagnosed(tmp_path / "a", watched(answers=ignored)))
    assert finding.kind == "answer-ignored"
    assert finding.text.startswith("the loss ignores answer 1: 49% of the targets")
    padding = replace(ANSWERS, silent={"1": 190}, between={})
    assert diagnosed(tmp_path / "b", watched(answers=padding)).kinds == []
    some = replace(ANSWERS, silent={"1": 90}, between={"1": 90})
    assert diagnosed(tmp_path / "c", watched(answers=some)).kinds == []


def test_a_gradient_that_vanishes_or_explodes_in_a_layer_is_found(tmp_path: Path) -> None:
    vanished = only(diagnosed(tmp_path / "a", watched(gradient={"encoder.0": 1e-3})))
    assert vanished.kind == "gradients-vanish"
    assert vanished.evidence == {
        "encoder.0 over those behind it": pytest.approx(1e-3),
        "encoder.1 over those behind it": pytest.approx(1),
    }
    exploded = only(diagnosed(tmp_path / "b", watched(gradient={"encoder.0": 1e3})))
    assert exploded.kind == "gradients-explode"
    assert exploded.text == "the gradient of encoder.0 is 1e+03 times that of the layers behind it"
    assert exploded.remedy.settings["training.schedule"] == "cosine:warmup=0.1"
    small = watched(gradient={"encoder.0": 0.05, "embed": 1e-5, "encoder.1": 0.0})
    assert diagnosed(tmp_path / "c", small).kinds == []


def test_without_a_watch_gradients_are_those_of_the_first_weights(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", loss=learning(20, low=0.5))
    found = diagnose(Patient("run", run=run), faults=FAULTS)
    outcomes = {each.kind: each.outcome for each in found.checks}
    assert outcomes["gradients-vanish"] == outcomes["gradients-explode"] == "clear"
    reasons = {each.kind: each.reason for each in found.unchecked}
    assert reasons["order-not-shuffled"] == "the training was not watched"
    patient = Patient("run", run=run)
    ratios = layers.ratio_to_later(patient)
    assert list(ratios) == ["encoder.0"]
    assert 0.01 < ratios["encoder.0"] < 100


def test_few_samples_say_nothing(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, watched(until=2), ended=False, until=0.3)
    reasons = {each.kind: each.reason for each in found.unchecked}
    assert reasons["warm-up-missing"] == "2 steps of the training were looked at, and 3 are needed"


@pytest.mark.parametrize(
    ("factor", "kinds"), [(10.0, ["initial-scale"]), (0.02, ["initial-scale"]), (2.0, [])]
)
def test_first_weights_of_another_scale_are_found(factor: float, kinds: list[str], tmp_path: Path) -> None:
    run = run_of(tmp_path, watched())
    patient = Patient("run", run=run)
    with torch.no_grad():
        for name, weight in patient.fresh.named_parameters():
            if weight.dim() > 1 and not name.startswith("readout"):
                weight.mul_(factor)
    found = diagnose(patient, faults=[layers.InitialScale])
    assert found.kinds == kinds
    if kinds:
        assert found.findings[0].from_start  # so no loss that begins high explains it
        assert "initial-loss-high" in layers.InitialScale.explains
        assert found.findings[0].evidence["spread times √inputs, median"] == pytest.approx(factor, rel=0.2)


def test_what_was_learned_all_the_same_is_only_noted(tmp_path: Path) -> None:
    well = {"train": lambda _: 1.0, "valid": lambda _: 1.0}
    found = diagnosed(tmp_path / "a", watched(gradient={"encoder.0": 1e-3}), **well)
    assert only(found).severity == "note"
    grouped = diagnosed(tmp_path / "b", watched(answers=replace(ANSWERS, grouped=0.97)), **well)
    assert only(grouped).severity == "warning"


def test_the_spec_of_these_tests_has_neither_decay_nor_a_warm_up() -> None:
    assert SPEC.training.optimiser.weight_decay == 0
    assert not isinstance(SPEC.training.schedule, Cosine)
    assert isinstance(SPEC, Spec)


def test_of_a_damaged_run_everything_else_is_checked(tmp_path: Path) -> None:
    run = run_of(tmp_path, watched(), ended=False, until=0.4)
    for name in ("observed.json", "metrics.jsonl", "best.safetensors"):
        run.file(name).write_bytes(b"{ not json")
    found = diagnose(Patient("run", run=run), faults=(*FAULTS, examples.SplitsOverlap))
    checks = {each.kind: each for each in found.checks}
    assert "observed.json is not as it was written" in checks["diverged"].reason
    assert checks["rate-too-high"].outcome == "unchecked"
    assert checks["splits-overlap"].outcome == checks["initial-scale"].outcome == "clear"
    assert checks["gradients-vanish"].outcome == "clear"
