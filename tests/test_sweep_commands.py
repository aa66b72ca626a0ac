"""``attnlab sweep`` as people use it: whole searches with real runs, stops, kills and refusals."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from attnlab.presets import preset
from attnlab.studies.sweeps.file import read_sweep_file
from attnlab.studies.sweeps.search import Sweep
from commands import attnlab, command, environment, run

pytestmark = pytest.mark.slow

SWEEPS = Path(__file__).parents[1] / "sweeps"
WANDB = """
program: train.py
method: bayes
metric: {name: val_loss, goal: minimize}
parameters:
  learning_rate: {distribution: log_uniform_values, min: 1e-3, max: 1e-1}
  d_model: {value: 8}
  n_heads: {values: [1, 2, 12]}
  epochs: {value: 2}
  model.hidden: {value: 8}
  task: {parameters: {digits: {value: 1}, train: {value: 40}, valid: {value: 7}, test: {value: 5}}}
"""
LONG = """
goal: maximize valid_token_accuracy
set:
  {task.digits: 2, task.train: 400, task.valid: 40, model.width: 16, model.hidden: 32,
   training.batch: 32, training.epochs: 6}
search:
  training.lr: log 1e-3 .. 1e-1
  model.dropout: 0.0 .. 0.2
  model.heads: [2, 4]
prune: {min_epochs: 2, max_epochs: 3}
"""
GRID = """
name: heads / rates
method: grid
set:
  {task.digits: 1, task.train: 40, task.valid: 7, task.test: 5, model.width: 8, model.hidden: 8,
   training.epochs: 1, training.optimiser: sgd, training.clip: 0}
search: {training.lr: [0.1, 0.01, 1.0e+15], model.heads: [2, 3]}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def trials(folder: Path) -> dict[str, Any]:
    """The outcome without all that depends on the clock, the machine and the words of the command."""
    found = json.loads((folder / "trials.json").read_text())
    return {key: value for key, value in found.items() if key not in ("environment", "timings", "command")}


def test_a_wandb_file_from_search_to_training(tmp_path: Path) -> None:
    words = ("sweep", written(tmp_path, WANDB), "--pool", "pool", "--out", "out", "--count", "4")
    retrain = ("--retrain", "1", "--retrain-seeds", "2")
    done = attnlab(*words, *retrain, "--workers", "2", cwd=tmp_path)
    folder = tmp_path / "out"
    assert "program train.py is not run: attnlab trains" in done.stderr
    assert "train it with: attnlab train --spec out/best.json" in done.stderr
    assert "Importance needs 10 finished trials with different values." in done.stdout
    found = trials(folder)
    assert [trial["state"] for trial in found["trials"]] == ["finished"] * 4
    assert len({trial["run"] for trial in found["trials"]}) == 4
    assert {trial["parameters"]["model.heads"] for trial in found["trials"]} <= {1, 2}
    assert {path.stem for path in folder.glob("*.svg")} == {"history", "parallel", "importance"}
    check_retrained(tmp_path, found)

    again = attnlab(*words, *retrain, "--json", cwd=tmp_path)
    assert again.stderr == "program train.py is not run: attnlab trains\nsmall: 4 trials are done, in out\n"
    told = json.loads(again.stdout)
    assert told["retrained"] == json.loads((folder / "best/study.json").read_text())
    assert {key: told[key] for key in found} == found == trials(folder)

    best = json.loads((folder / "best.json").read_text())
    flags = ("--training.epochs", "1", "--out", "trained")
    attnlab("train", "--spec", folder / "best.json", *flags, cwd=tmp_path)
    trained = json.loads((tmp_path / "trained/spec.json").read_text())
    assert trained == {**best, "training": {**best["training"], "epochs": 1}}


def check_retrained(place: Path, found: dict[str, Any]) -> None:
    """Fresh seeds, and test data for these alone."""
    study = json.loads((place / "out/best/study.json").read_text())
    assert study["seeds"] == [1, 2]
    (variant,) = study["variants"]
    assert variant["name"] == f"trial {found['ranking'][0]}"
    evaluated = {path.parents[1].name for path in (place / "pool").glob("*/analysis/*.json")}
    assert evaluated == set(variant["runs"])
    assert not evaluated & {trial["run"] for trial in found["trials"]}
    best = json.loads((place / "out/best.json").read_text())
    specs = [json.loads((place / "pool" / run / "spec.json").read_text()) for run in variant["runs"]]
    assert specs == [{**best, "seed": 1}, {**best, "seed": 2}]


def start(*words: str | Path, cwd: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(*words),
        cwd=cwd,
        env=environment(cwd),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_run(pool: Path, number: int, process: "subprocess.Popen[str]") -> None:
    """Wait until so many runs have begun, and the last of them has an epoch behind it."""
    for _ in range(6000):
        if len(list(pool.glob("*/metrics.jsonl"))) >= number or process.poll() is not None:
            return
        time.sleep(0.02)
    raise AssertionError(f"run {number} never came")


def test_interrupted_and_killed_one_worker_ends_with_the_same_table(tmp_path: Path) -> None:
    words = ("sweep", written(tmp_path, LONG), "--count", "4", "--workers", "1", "--seed", "3")
    attnlab(*words, "--out", "whole", "--pool", "pool-1", cwd=tmp_path)
    pieces = (*words, "--out", "pieces", "--pool", "pool-2")
    pool = tmp_path / "pool-2"

    process = start(*pieces, cwd=tmp_path)
    wait_for_run(pool, 2, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "stopped and saved\nthe same command goes on\n" in said
    assert not (tmp_path / "pieces/trials.json").exists()

    process = start(*pieces, cwd=tmp_path)
    wait_for_run(pool, 3, process)
    process.kill()
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    attnlab(*pieces, cwd=tmp_path)

    whole = trials(tmp_path / "whole")
    assert trials(tmp_path / "pieces") == whole
    assert len(whole["trials"]) == 4
    assert "pruned" in {trial["state"] for trial in whole["trials"]}
    assert (tmp_path / "pieces/best.json").read_bytes() == (tmp_path / "whole/best.json").read_bytes()


def test_a_grid_with_impossible_and_failing_combinations(tmp_path: Path) -> None:
    done = attnlab("sweep", written(tmp_path, GRID), "--workers", "1", cwd=tmp_path)
    found = trials(tmp_path / "runs/sweeps/heads-rates")
    assert [tuple(trial["parameters"].values()) for trial in found["trials"]] == [
        (0.1, 2),
        (0.01, 2),
        (1e15, 2),
    ]
    assert [trial["state"] for trial in found["trials"]] == ["finished", "finished", "failed"]
    reason = "model.heads is 3, but it must be a divisor of model.width 8, such as 1, 2, 4, 8"
    assert [each["reason"] for each in found["skipped"]] == [reason] * 3
    error = found["trials"][2]["error"]
    assert error.startswith("the loss became ")
    for sentence in (
        "The search ended early: all 6 combinations have been tried.",
        f"3 combinations were impossible, such as: {reason}.",
        f"Trial 4 failed: {error}.",
    ):
        assert sentence in done.stdout.splitlines()


ALL_AT_ONCE = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from attnlab.cli.main import run
def one(words):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    return code, out.getvalue(), err.getvalue()
print(json.dumps([one(words) for words in json.load(sys.stdin)]))
"""


def complaints(cases: list[list[str]], cwd: Path) -> list[str]:
    """The one sentence with which each command refuses, from one process, since starting takes long."""
    done = run([sys.executable, "-c", ALL_AT_ONCE], cwd=cwd, stdin=json.dumps(cases))
    sentences = []
    for words, (code, out, err) in zip(cases, json.loads(done.stdout), strict=True):
        assert (code, out, len(err.splitlines())) == (2, "", 1), (words, code, out, err)
        sentences.append(err.removeprefix("attnlab: ").rstrip())
    return sentences


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_refusals_are_one_sentence_and_leave_nothing_behind(tmp_path: Path) -> None:
    good = str(SWEEPS / "addition-short.yaml")
    (tmp_path / "broken.yaml").write_text("search: {training.lr: [1, 2")
    (tmp_path / "keyless.yaml").write_text("search: {}")
    file = read_sweep_file(Path(good))
    with Sweep(file, preset("addition", "default"), tmp_path / "taken", seed=0, count=1):
        pass
    for name, text in (("damaged", "{"), ("future", '{"format": 2}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sweep.json").write_text(text)
    with Sweep(file, preset("addition", "default"), tmp_path / "no-database", seed=0, count=1):
        pass
    (tmp_path / "no-database/trials.db").write_text("no database" * 99)
    before = tree(tmp_path)
    another = "taken holds a sweep with another {}; choose another folder for out"
    expected = {
        ("missing.yaml",): "missing.yaml",
        ("broken.yaml",): "broken.yaml: ",
        ("keyless.yaml",): "keyless.yaml: the sweep has no parameters, but it must vary at least one",
        (good, "--task", "knitting"): "unknown task 'knitting'",
        (good, "--preset", "huge"): "unknown preset 'huge' of addition",
        (good, "--count", "0"): "count is 0, but it must be at least 1",
        (good, "--retrain", "-1"): "retrain is -1, but it must be at least 0",
        (good, "--retrain-seeds", "0"): "retrain_seeds is 0, but it must be at least 1",
        (good, "--workers", "0"): "workers is 0, but it must be at least 1",
        (good, "--seed", "-1"): "seed is -1, but it must be from 0 to 2147483647",
        (str(SWEEPS / "encoder-only.yaml"),): "model.layers is not a key of this spec",
        (str(SWEEPS / "addition.yaml"), "--out", "taken"): another.format("sweep file"),
        (good, "--out", "taken", "--seed", "1"): another.format("spec"),
        (good, "--out", "taken", "--preset", "reference"): another.format("spec"),
        (good, "--out", "damaged"): "damaged/sweep.json cannot be read (Expecting property name",
        (
            good,
            "--out",
            "future",
        ): "future/sweep.json has format 2, but this version of attnlab reads format 1",
        (
            good,
            "--out",
            "no-database",
        ): "no-database/trials.db cannot be used as Optuna's storage (file is not",
        (good, "--out", "broken.yaml"): "cannot write broken.yaml: file exists",
    }
    said = complaints([["sweep", *words] for words in expected], tmp_path)
    for words, sentence in zip(expected, said, strict=True):
        assert expected[words] in sentence, words
    assert tree(tmp_path) == before
