"""Runs of each form that was ever written are opened, analysed and resumed."""

import json
import re
import shutil
from pathlib import Path

import pytest

import attnlab as al
from attnlab.runs import RunFolder, find_damage, load_model, snapshot_steps
from attnlab.runs.manifest import FORMAT, MANIFEST
from attnlab.training import train_run
from tiny import tiny

ROOT = Path(__file__).parent.parent
FORMS = ROOT / "tests/forms"
PAGE = (ROOT / "docs/reference/run-folder.md").read_text(encoding="utf-8")
SPEC = tiny(threads=1, snapshots=(0, 9))


@pytest.fixture(params=["run-0", "run-1"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Form 0 is that of older versions: the same files, and no manifest."""
    shutil.copytree(FORMS / "run-1", tmp_path / "runs")
    if request.param == "run-0":
        for manifest in tmp_path.glob("runs/*/manifest.json"):
            manifest.unlink()
    return tmp_path / "runs"


def test_there_is_a_form_of_this_version() -> None:
    for run in (FORMS / f"run-{FORMAT}").iterdir():
        assert json.loads((run / MANIFEST).read_text())["format"] == FORMAT
        assert find_damage(run) is None


def test_a_finished_run_is_opened_and_analysed(folder: Path) -> None:
    run = al.load(folder / "finished")
    assert run.spec() == SPEC
    assert (len(run.metrics().epochs), len(run.metrics().steps)) == (3, 15)
    assert (run.summary() or {})["steps"] == 15
    assert run.observed().steps == 15
    assert snapshot_steps(run) == [0, 9, 15]
    kept = run.analysis("evaluate-test")
    assert kept is not None
    assert run.evaluate().to_json()["exact_match"] == kept["exact_match"]
    load_model(run, "snapshots/step-00000009")
    assert find_damage(run.path) is None  # it was written to


def test_a_stopped_run_is_resumed(folder: Path) -> None:
    run = RunFolder(folder / "stopped")
    summary = train_run(run)
    assert summary is not None
    assert summary["steps"] == 15
    assert [epoch.epoch for epoch in run.metrics().epochs] == [1, 2, 3]
    assert snapshot_steps(run) == [0, 9, 15]
    assert find_damage(run.path) is None


def test_the_page_names_every_file() -> None:
    named = set(re.findall(r"^\| `([^`]+)` \|", PAGE.split("## What is bound")[0], re.MULTILINE))
    there = {
        path.relative_to(run).as_posix()
        for run in (FORMS / "run-1").iterdir()
        for path in run.rglob("*")
        if path.is_file()
    }
    assert there - {re.sub("NAME", "evaluate-test", name) for name in named} == {
        "snapshots/step-00000009.safetensors",
        "snapshots/step-00000015.safetensors",
    }
    assert {"task.py", "start.safetensors", "error.json"} < named
