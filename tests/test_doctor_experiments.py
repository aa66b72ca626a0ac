"""Experiments: short trainings that keep to a budget, and what they confirm, refute and find."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import attnlab as al
from attnlab.cli.parsing import read_seconds
from attnlab.doctor import experiments, rate_trials, training_log
from attnlab.doctor.bench import Bench, Course, OverError
from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.findings import Check, Diagnosis, Finding, Remedy
from attnlab.doctor.patient import Patient
from attnlab.doctor.rate_trials import RateTrial, refined
from attnlab.errors import SpecError
from attnlab.models import build_for
from attnlab.problems.sorting import Sorting
from attnlab.runs import RunFolder
from attnlab.sets import Examples
from attnlab.specs import Constant, Spec, TokensModel, Training, with_settings
from sick_runs import learning, run_with_log

SMALL = Spec(
    task=Sorting(low=3, high=3, train=128, valid=40, test=40),
    model=TokensModel(width=12, heads=2, hidden=12, layers=1),
    training=Training(epochs=30, batch=16, lr=0.01, schedule=Constant(), threads=1),
    seed=1,
)


class Ticking:
    """A clock on which everything that is asked for takes a hundredth of a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


def bench(budget: float, clock: Callable[[], float] | None = None) -> Bench:
    return Bench(build_for, budget, clock=clock or Ticking())


def data(spec: Spec = SMALL) -> Examples:
    return spec.task.splits(spec.seed).train


def sick(path: Path, *, rate: float = 0.01, loss: Any = None, **lines: Any) -> RunFolder:
    spec = with_settings(SMALL, {"training.lr": rate})
    return run_with_log(path, loss=loss or learning(20, low=0.5), spec=spec, **lines)


def tried(run: RunFolder, budget: float, faults: Any, **parts: Any) -> Diagnosis:
    patient = Patient("run", run=run, **parts)
    return diagnose(patient, budget=budget, faults=faults, clock=Ticking())


# The bench


def test_a_training_is_a_function_of_its_spec_and_steps() -> None:
    first, again = (bench(100.0).train(SMALL, data(), 20) for _ in range(2))
    assert first == again
    assert bench(100.0).train(with_settings(SMALL, {"seed": 2}), data(), 20) != first
    longer = bench(100.0).train(with_settings(SMALL, {"training.lr": 0.02}), data(), 20)
    assert longer.losses[0] == first.losses[0]  # the same weights and the same batch
    assert longer.end != first.end
    assert len(first.losses) == len(first.exact) == 20


def test_the_budget_is_kept_between_steps() -> None:
    clock = Ticking()
    poor = bench(0.3, clock)
    with pytest.raises(OverError, match=r"the budget of 0\.3 s ended while it was tried"):
        poor.train(SMALL, data(), 2560)
    assert clock.now < 0.4
    assert poor.left == 0
    with pytest.raises(OverError, match="allows 3 steps a training, and 20 are needed"):
        bench(0.2).steps(SMALL, data(), 1.0, 4)
    rich = bench(100.0)
    assert rich.steps(SMALL, data(), 0.5, 10) == 320  # of a hundredth a step, or two as the clock is asked
    assert rich.left < 100


def test_a_training_that_diverges_is_infinite() -> None:
    wild = with_settings(SMALL, {"training.lr": 1e30, "training.optimiser": "sgd", "training.clip": 0.0})
    course = bench(100.0).train(wild, data(), 20)
    assert math.isinf(course.end)
    assert len(course.losses) == 20
    early = bench(100.0).train(SMALL, data(), 20, enough=lambda loss, right: True)
    assert len(early.losses) == 1


def test_progress_is_told_in_seconds() -> None:
    told = list[tuple[int, int]]()
    work = Bench(build_for, 2.5, clock=Ticking(), progress=lambda done, total: told.append((done, total)))
    work.train(SMALL, data(), 150)
    assert told[0] == (0, 3)
    assert told[-1] == (1, 3)


# What it takes


def test_without_a_budget_or_a_run_there_are_no_experiments(tmp_path: Path) -> None:
    found = tried(sick(tmp_path / "run"), 0, experiments.FAULTS)
    assert {each.reason for each in found.checks} == {"experiments need a budget"}
    model = Patient("model", model=build_for(SMALL), examples=data())
    reasons = {each.reason for each in diagnose(model, budget=5, faults=experiments.FAULTS).checks}
    assert reasons == {"experiments need a run, whose spec says how it is trained"}
    short = tried(sick(tmp_path / "other"), 0.1, experiments.FAULTS)
    assert {each.kind: each.outcome for each in short.checks} == {
        "cannot-overfit-one-batch": "unchecked",
        "labels-random": "clear",  # a quick classifier reads them
        "positions-useless": "unchecked",
    }


def test_experiments_touch_neither_the_run_nor_the_generator(tmp_path: Path) -> None:
    run = sick(tmp_path / "run", loss=learning(0.5, low=0.0))
    files = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    before = torch.get_rng_state()
    found = tried(run, 6, [*training_log.FAULTS, *experiments.FAULTS])
    assert torch.equal(torch.get_rng_state(), before)
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == files
    assert replace(found, seconds=0.0) == replace(
        tried(run, 6, [*training_log.FAULTS, *experiments.FAULTS]), seconds=0.0
    )


@pytest.mark.parametrize(
    ("word", "seconds"), [("60", 60), ("60s", 60), ("2m", 120), ("1m30s", 90), ("0.5s", 0.5), ("2min", 120)]
)
def test_a_budget_is_written_with_its_unit(word: str, seconds: float) -> None:
    assert read_seconds(word) == seconds


@pytest.mark.parametrize("word", ["", "s", "-3", "2h", "nan", "60 s 3"])
def test_what_is_no_time_is_refused(word: str) -> None:
    with pytest.raises(SpecError, match="write seconds or minutes, such as 60s, 2m or 60"):
        read_seconds(word)


# Rates


def trial(own: float, steps: int = 40, **ends: float) -> RateTrial:
    """Two seeds, whose loss falls evenly from 1 to the end that is given by the rate."""
    courses = {
        float(rate.removeprefix("r").replace("_", ".")): [
            Course([1 - (1 - end * more) * step / (steps - 1) for step in range(steps)], [0.0] * steps)
            for more in (0.99, 1.01)
        ]
        for rate, end in ends.items()
    }
    return RateTrial(own, steps, courses)


def test_the_verdict_is_the_best_rate_beyond_chance() -> None:
    assert trial(0.1, r0_1=0.5, r0_3=0.2, r1=0.9).verdict == "low"
    assert trial(0.3, r0_1=0.2, r0_3=0.8, r1=0.9).verdict == "high"
    assert trial(0.1, r0_1=0.5, r0_3=0.49, r1=0.9).verdict == "fits"
    assert trial(0.1, r0_1=0.5, r0_3=5.0).verdict == "fits"
    assert trial(0.1, r0_1=0.5, r0_3=0.0).reaches(0.3, 0.5) == 23
    assert trial(0.1, r0_1=0.5, r0_3=0.2).reaches(0.3, 0.1) is None


def log_of(path: Path, monkeypatch: pytest.MonkeyPatch, found: RateTrial) -> Patient:
    monkeypatch.setattr(rate_trials, "try_rates", lambda _: found)
    return Patient("run", run=sick(path, rate=found.own))


CLAIM = Finding("rate-too-low", "serious", 0.7, "optimisation", "log", "it falls", {"x": 1.0}, Remedy("up"))
CHECKS = [Check("rate-too-low", "optimisation", "log", "found")]


def test_a_finding_is_confirmed_with_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = log_of(tmp_path / "run", monkeypatch, trial(0.1, r0_1=0.9, r0_3=0.2, r0_03=0.95))
    (found,), checks = refined(patient, [CLAIM], CHECKS)
    assert found.text == "it falls; a rate of 0.3 reaches in 28 steps what this one reached in 500"
    assert found.confidence == 0.95
    assert found.remedy.settings == {"training.lr": 0.3}
    assert found.evidence["loss at a rate of 0.1"] == pytest.approx(math.exp(math.log(0.9)), rel=0.1)
    assert found.curve is not None
    assert list(found.curve.lines) == ["0.03", "0.1", "0.3"]
    assert checks == CHECKS


def test_a_finding_is_refuted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = log_of(tmp_path / "run", monkeypatch, trial(0.1, r0_1=0.6, r0_3=0.7, r0_03=0.95))
    (found,), _ = refined(patient, [CLAIM], CHECKS)
    assert found.confidence == 0.21
    assert found.text.startswith("it falls; but no such rate learns faster: 40 steps get the loss to ")


def test_an_experiment_may_find_what_the_log_did_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear = [replace(CHECKS[0], outcome="clear")]
    patient = log_of(tmp_path / "run", monkeypatch, trial(0.1, r0_1=0.9, r0_3=0.2, r0_03=0.95))
    (found,), (check,) = refined(patient, [], clear)
    assert (found.kind, found.source, found.confidence) == ("rate-too-low", "experiment", 0.8)
    assert (check.outcome, check.source) == ("found", "experiment")
    slower = log_of(tmp_path / "other", monkeypatch, trial(0.1, r0_1=0.9, r0_3=0.7, r0_03=0.95))
    assert refined(slower, [], clear) == ([], clear)  # faster, but not by much


def test_a_training_that_learned_is_left_alone(tmp_path: Path) -> None:
    run = sick(tmp_path / "run", valid=lambda _: 0.99)
    assert refined(Patient("run", run=run), [CLAIM], CHECKS) == ([CLAIM], CHECKS)


@pytest.mark.parametrize(("rate", "verdict"), [(1e-5, "low"), (3.0, "high")])
def test_real_trainings_tell_which_way_to_go(tmp_path: Path, rate: float, verdict: str) -> None:
    patient = Patient("run", run=sick(tmp_path / "run", rate=rate))
    patient.allow(20.0, Ticking(), lambda done, total: None)
    found = rate_trials.try_rates(patient)
    assert found.verdict == verdict
    assert 1e-4 < found.best < 0.3


# Kinds that only an experiment finds


def only(found: Diagnosis) -> tuple[str, str]:
    (check,) = found.checks
    return check.outcome, check.reason


def test_one_batch_that_contradicts_itself_is_found(tmp_path: Path) -> None:
    run, kind = sick(tmp_path / "run"), [experiments.CannotOverfitOneBatch]
    assert only(tried(run, 35, kind)) == ("clear", "")
    whole = data()
    same = Examples(tuple(each[:1].expand(each.shape) for each in whole.inputs), torch.arange(128) % 2)
    (found,) = tried(run, 35, kind, training=same).findings
    assert found.severity == "serious"
    assert found.text.startswith("16 examples are not learned by heart in ")
    assert found.evidence["best accuracy on the batch"] < 0.9
    assert only(tried(run, 3, kind, training=same))[1].endswith("did not learn one batch")
    alike = replace(same, targets=torch.zeros(128, dtype=torch.long))
    assert only(tried(run, 35, kind, training=alike))[1].endswith("have one and the same answer")


def test_random_labels_are_found(tmp_path: Path) -> None:
    run, kind = sick(tmp_path / "run"), [experiments.LabelsRandom]
    whole = data(with_settings(SMALL, {"task.train": 1000}))
    order = torch.randperm(len(whole), generator=torch.Generator().manual_seed(8))
    random = replace(whole, targets=whole.targets[order])
    (found,) = tried(
        run, 20, kind, training=random[slice(100, None)], examples=random[slice(0, 100)]
    ).findings
    loss = found.evidence
    assert loss["loss with the labels"] > 0.8 * loss["loss with shuffled labels"]
    assert found.confidence < 0.5  # nothing is put down to it
    assert only(tried(run, 30, kind, training=whole)) == ("clear", "")


def test_positions_that_do_nothing_are_found(tmp_path: Path) -> None:
    run, kind = sick(tmp_path / "run", rate=0.03), [experiments.PositionsUseless]
    (tokens,) = data(with_settings(SMALL, {"task.train": 2000})).inputs
    answers = {"first": tokens[:, 0] > 49, "any": tokens.amin(dim=1) <= 15}
    found = {
        name: only(tried(run, 20, kind, training=Examples((tokens,), each.long())))
        for name, each in answers.items()
    }
    assert found == {"first": ("clear", ""), "any": ("found", "")}


def test_the_command_takes_a_budget(tmp_path: Path) -> None:
    from commands import attnlab

    run = sick(tmp_path / "run", valid=lambda _: 0.99)
    said = attnlab("doctor", run.path, "--budget", "0.001s", cwd=tmp_path, code=0)
    assert "cannot-overfit-one-batch" in said.stdout
    said = attnlab("doctor", run.path, "--budget", "1h", cwd=tmp_path, code=2)
    assert "write seconds or minutes, such as 60s, 2m or 60" in said.stderr
    with pytest.raises(al.InputError, match="budget is -1"):
        al.load(str(run.path)).diagnose(budget=-1)
