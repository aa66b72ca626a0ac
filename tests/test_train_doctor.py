"""A training that the doctor watches: what is sure is said once while it runs; nothing else changes."""

import json
from pathlib import Path
from typing import Any

import pytest

import attnlab as al
from attnlab.doctor.findings import Check, Diagnosis, Finding, Remedy
from attnlab.front.doctoring import TrainingDoctor, summary_lines
from attnlab.problems.sorting import Sorting
from attnlab.runs import create_run
from attnlab.specs import Constant, Spec, TokensModel, Training, with_settings
from attnlab.training import Trainer, train_run
from attnlab.training.trainer import DivergedError
from commands import TINY as FLAGS
from commands import attnlab
from tiny import tiny

HIGH = Spec(
    task=Sorting(low=3, high=5, train=200, valid=20, test=20),
    model=TokensModel(width=6, heads=1, hidden=5, layers=1),
    training=Training(epochs=4, batch=5, lr=3.0, schedule=Constant(), threads=1),
)
"""Its rate is far too high."""


def test_the_bytes_of_a_run_do_not_depend_on_it(tmp_path: Path) -> None:
    runs = [create_run(tmp_path / name, tiny()) for name in ("quiet", "watched")]
    train_run(runs[0])
    train_run(runs[1], listeners=[TrainingDoctor(runs[1], lambda _: None)])
    for name in ("best.safetensors", "last.safetensors"):
        assert runs[0].file(name).read_bytes() == runs[1].file(name).read_bytes()


def test_what_is_sure_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = al.train(HIGH, out=tmp_path / "run", doctor=True)
    lines = capsys.readouterr().err.splitlines()
    end = next(number for number, line in enumerate(lines) if line.startswith("doctor: "))
    during = [line for line in lines[:end] if line.startswith("rate-too-high (serious): ")]
    assert len(during) == 1
    tried = lines[lines.index(during[0]) + 1]
    assert tried.startswith("  try: ")
    assert "--training.lr" in tried
    assert all(len(line) <= 80 for line in (*during, tried))
    assert lines[end].endswith("could not be checked") or "kinds of fault" in lines[end]
    assert any(line.startswith("rate-too-high") for line in lines[end:])
    assert lines[-1] == f"the whole diagnosis: attnlab doctor {run.called}"


def test_a_training_that_breaks_off_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sick = with_settings(HIGH, {"training.lr": 1e30, "training.optimiser": "sgd", "training.clip": 0.0})
    with pytest.raises(DivergedError, match="the loss became"):
        al.train(sick, out=tmp_path / "run", doctor=True)
    *_, said, tried = capsys.readouterr().err.splitlines()
    assert said.startswith("diverged (serious): the loss was not finite at step ")
    assert tried == "  try: try a rate of 0.15 with a warm-up, and clip gradients"  # flags take over 80


def test_looks_take_no_more_than_their_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = list[int]()
    run = create_run(tmp_path / "run", tiny())
    listener, trainer = TrainingDoctor(run, lambda _: None), Trainer(tiny())

    def look(trainer: Any, *, last: bool) -> None:
        looked.append(trainer.step)
        listener._spent += 1e9

    monkeypatch.setattr(listener, "_look", look)
    trainer.train([listener])
    assert looked == [1]  # it took more than its share


def test_the_flag_leaves_the_json_as_it_is(tmp_path: Path) -> None:
    said = attnlab("train", "addition", *FLAGS, "--doctor", "--json", "--out=run", cwd=tmp_path)
    assert json.loads(said.stdout)["steps"] == 39
    assert "doctor: " in said.stderr
    assert said.stderr.endswith("the whole diagnosis: attnlab doctor run\n")


def test_the_summary_leaves_out_what_others_explain() -> None:
    cause = Finding(
        "rate-too-high", "serious", 0.8, "optimisation", "log", "it jumps", {}, Remedy("lower it")
    )
    symptom = Finding(
        "loss-stuck", "serious", 0.3, "optimisation", "log", "it stays", {}, Remedy("try"), None, cause.kind
    )
    checks = [Check("rate-too-high", "optimisation", "log", "found")]
    found = Diagnosis(run="run", findings=[cause, symptom], checks=checks, seconds=1.0)
    assert summary_lines(found) == [
        "doctor: 2 findings; 1 kinds of fault were looked for: 1 found",
        "rate-too-high (serious): it jumps",
        "  try: lower it",
    ]
