"""Sweeps and studies of a task that stands in a file: workers get the file with the job.

A cluster gets it too, in ``test_cluster.py``.
"""

import json
import shutil
import signal
from pathlib import Path

import pytest

from commands import attnlab
from tiny_cluster import contents, ended, epochs_in, finished, started, until
from tiny_file_jobs import REVERSE, STUDY, home

pytestmark = pytest.mark.slow

WORDS = ("sweep", "widths.yaml", "--task", "mine.py", "--out", "sweep", "--pool", "pool", "--workers", "1")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both of them on this machine, undisturbed."""
    folder = home(tmp_path_factory.mktemp("files") / "here")
    attnlab(*WORDS, "--retrain", "1", "--retrain-seeds", "1", cwd=folder)
    attnlab(*STUDY, "--workers", "1", cwd=folder)
    return folder


def test_a_sweep_of_a_task_in_a_file(here: Path) -> None:
    trials = json.loads((here / "sweep/trials.json").read_text())["trials"]
    assert [(trial["state"], trial["epochs"]) for trial in trials] == [("finished", 3)] * 2
    assert json.loads((here / "sweep/best/study.json").read_text())["runs"] == {"finished": 1, "wanted": 1}
    copies = list((here / "pool").glob("reverse-*/task.py"))
    assert len(copies) == 3  # the study finds two of them done
    assert {copy.read_bytes() for copy in copies} == {REVERSE.read_bytes()}


def test_the_best_spec_of_a_sweep_can_be_trained(here: Path) -> None:
    """The user has named the file, whose bytes the spec names."""
    attnlab("train", "--tasks", "mine.py", "--spec", "sweep/best.json", "--out", "again", cwd=here)
    (best,) = [trial["run"] for trial in [json.loads((here / "sweep/trials.json").read_text())["best"]]]
    for name in ("best.safetensors", "task.py", "spec.json"):
        assert (here / "again" / name).read_bytes() == (here / "pool" / best / name).read_bytes()


def test_a_stopped_sweep_of_a_task_in_a_file_ends_the_same(tmp_path: Path) -> None:
    whole, pieces = home(tmp_path / "whole", 12), home(tmp_path / "pieces", 12)
    attnlab(*WORDS, cwd=whole)
    with started(*WORDS, cwd=pieces) as process:
        until(lambda: any(epochs_in(pieces / "pool").values()), process)
        process.send_signal(signal.SIGINT)
        ended(process, 130)
    assert len(finished(pieces)) < 2
    attnlab(*WORDS, cwd=pieces)
    assert contents(pieces / "pool") == contents(whole / "pool")
    for name in ("trials.json", "best.json", "parallel.json"):
        assert contents(pieces / "sweep")[name] == contents(whole / "sweep")[name]


def test_a_changed_file_is_another_sweep(here: Path, tmp_path: Path) -> None:
    shutil.copytree(here, tmp_path / "there")
    (tmp_path / "there/mine.py").write_text(REVERSE.read_text() + "\n# another version\n")
    told = attnlab(*WORDS, cwd=tmp_path / "there", code=2).stderr
    assert told == "attnlab: sweep holds a sweep with another spec; choose another folder for out\n"
