"""Sweeps and studies of a task that stands in a file: workers get the file with the job."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from commands import apart
from tiny_cluster import contents, ended, epochs_in, finished, local_cluster, started, until

pytestmark = pytest.mark.slow

REVERSE = Path(__file__).parents[1] / "examples" / "reverse.py"
SWEEP = """
method: grid
set: {task.train: 200, task.valid: 20, task.test: 20, training.epochs: EPOCHS, model.hidden: 16}
search: {model.width: [16, 32]}
"""
CATALOGUE = """
from attnlab.presets import preset
from attnlab.specs import with_settings
from attnlab.studies import EXACT_MATCH, Study
small = {"task.train": 200, "task.valid": 20, "task.test": 20, "training.epochs": 3, "model.hidden": 16}
base = with_settings(preset("mine.py", "default"), small)
STUDIES = [Study(name="mine", question="Does width help?", seeds=1, measures=(EXACT_MATCH,),
    variants={str(width): with_settings(base, {"model.width": width}) for width in (16, 32)})]
"""
WORDS = ("sweep", "widths.yaml", "--task", "mine.py", "--out", "sweep", "--pool", "pool")
STUDY = ("study", "run", "mine", "--catalogue", "c.py", "--pool", "pool", "--out", "result")


def home(folder: Path, epochs: int = 3) -> Path:
    """A folder with a task, a sweep and a study of it."""
    folder.mkdir()
    shutil.copy(REVERSE, folder / "mine.py")
    (folder / "widths.yaml").write_text(SWEEP.replace("EPOCHS", str(epochs)))
    (folder / "c.py").write_text(CATALOGUE)
    return folder


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both of them on this machine, undisturbed."""
    folder = home(tmp_path_factory.mktemp("files") / "here")
    apart(*WORDS, "--workers", "2", "--retrain", "1", "--retrain-seeds", "1", cwd=folder)
    apart(*STUDY, cwd=folder)
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
    apart("train", "--tasks", "mine.py", "--spec", "sweep/best.json", "--out", "again", cwd=here)
    (best,) = [trial["run"] for trial in [json.loads((here / "sweep/trials.json").read_text())["best"]]]
    for name in ("best.safetensors", "task.py", "spec.json"):
        assert (here / "again" / name).read_bytes() == (here / "pool" / best / name).read_bytes()


def test_a_stopped_sweep_of_a_task_in_a_file_ends_the_same(tmp_path: Path) -> None:
    whole, pieces = home(tmp_path / "whole", 25), home(tmp_path / "pieces", 25)
    apart(*WORDS, "--workers", "1", cwd=whole)
    with started(*WORDS, "--workers", "1", cwd=pieces) as process:
        until(lambda: any(epochs_in(pieces / "pool").values()), process)
        process.send_signal(signal.SIGINT)
        ended(process, 130)
    assert len(finished(pieces)) < 2
    apart(*WORDS, "--workers", "1", cwd=pieces)
    assert contents(pieces / "pool") == contents(whole / "pool")
    for name in ("trials.json", "best.json", "parallel.json"):
        assert contents(pieces / "sweep")[name] == contents(whole / "sweep")[name]


def test_a_changed_file_is_another_sweep(here: Path, tmp_path: Path) -> None:
    shutil.copytree(here, tmp_path / "there")
    (tmp_path / "there/mine.py").write_text(REVERSE.read_text() + "\n# another version\n")
    told = apart(*WORDS, cwd=tmp_path / "there", code=2).stderr
    assert told == "attnlab: sweep holds a sweep with another spec; choose another folder for out\n"


def test_a_cluster_trains_a_task_in_a_file_to_the_same_bytes(here: Path, tmp_path: Path) -> None:
    """The nodes have never heard of the task: its file comes with the job."""
    there = home(tmp_path / "there")
    with local_cluster() as nodes:
        apart(*STUDY, "--cluster", nodes.address, cwd=there)
    study = json.loads((there / "result/study.json").read_text())
    assert study["runs"] == {"finished": 2, "wanted": 2}
    mine, theirs = contents(there / "pool"), contents(here / "pool")
    assert len(mine) >= 2 * len({"spec.json", "task.py", "best.safetensors", "summary.json"})
    assert mine == {name: theirs[name] for name in mine}  # beside them lies what the sweep trained
    assert contents(there / "result") == contents(here / "result")
