"""Studies on a real Ray cluster of two nodes: the same bytes as on one machine, whatever is lost."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnlab.runs import RunFolder
from attnlab.studies.jobs import failure
from attnlab.studies.running import ATTEMPTS
from commands import apart
from tiny_cluster import (
    Nodes,
    contents,
    descendants,
    ended,
    epochs_in,
    finished,
    local_cluster,
    started,
    study,
    study_of,
    until,
)
from tiny_file_jobs import STUDY, home

pytestmark = pytest.mark.slow

ONE = ("--workers", "1")
"""What is computed here for comparison needs no more, and starting one takes longer than its runs."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with local_cluster() as found:
        yield found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The slow study on this machine alone, with nothing in its way."""
    folder = tmp_path_factory.mktemp("undisturbed")
    apart(*study("tiny-slow", *ONE), cwd=folder)
    assert len(finished(folder)) == 4
    return folder


def test_a_cluster_gives_the_same_bytes_as_one_machine(nodes: Nodes, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    apart(*study("tiny", *ONE), cwd=here)
    with started(*study("tiny", "--cluster", nodes.address), cwd=there) as process:
        busy: set[int] = set()

        def look() -> bool:
            busy.update(nodes.workers().values())
            return process.poll() is not None

        until(look)
        ended(process)
    assert len(busy) == 2
    assert nodes.second in busy
    assert contents(there / "pool") == contents(here / "pool")
    assert contents(there / "result") == contents(here / "result")
    assert set(contents(there / "result")) == {"study.json", "study.md", "study.svg"}
    assert len(finished(there)) == 4


def test_a_task_in_a_file_is_trained_to_the_same_bytes(nodes: Nodes, tmp_path: Path) -> None:
    """The nodes have never heard of the task: its file comes with the job."""
    here, there = home(tmp_path / "here"), home(tmp_path / "there")
    apart(*STUDY, *ONE, cwd=here)
    apart(*STUDY, "--cluster", nodes.address, cwd=there)
    assert study_of(there)["runs"] == {"finished": 2, "wanted": 2}
    mine = contents(there / "pool")
    assert mine == contents(here / "pool")
    assert len(mine) >= 2 * len({"spec.json", "task.py", "best.safetensors", "summary.json"})
    assert contents(there / "result") == contents(here / "result")


@pytest.mark.skipif(shutil.which("ss") is None, reason="only ss tells who listens where")
def test_nothing_listens_beyond_this_machine(nodes: Nodes) -> None:
    family = descendants(nodes.process.pid)
    listed = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True)
    lines = [line for line in listed.stdout.splitlines() if any(f"pid={pid}," in line for pid in family)]
    places = [line.split()[3].rpartition(":")[0] for line in lines]
    assert len(places) >= 3
    assert set(places) <= {"127.0.0.1", "[::ffff:127.0.0.1]", "[::1]"}


def test_a_run_that_cannot_succeed_fails_once_and_the_others_finish(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    told = apart(
        *study("tiny-broken", "--seeds", "1", "--cluster", "auto"), cwd=tmp_path
    ).stderr.splitlines()
    broken, plain = study_of(tmp_path)["variants"]
    (failed,) = broken["failed"]
    assert "loss" in failed["error"]
    assert [line for line in told if "broken" in line and "failed" in line] == [
        f"broken, seed 0 failed: {failed['error']}"
    ]
    assert failure(RunFolder(tmp_path / "pool" / broken["runs"][0])) is not None
    assert plain["failed"] == []
    assert list(finished(tmp_path)) == plain["runs"]


def test_a_job_that_takes_its_process_down_has_failed_after_three_attempts(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--cluster auto`` finds what Ray has noted in its temporary folder."""
    monkeypatch.setenv("TMPDIR", str(nodes.folder))
    words = study("tiny-slow", "--seeds", "1", "--cluster", "auto")
    with started(*words, cwd=tmp_path) as process:
        killed: set[int] = set()

        def kill_workers() -> bool:
            for pid in nodes.workers().keys() - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            return process.poll() is not None

        until(kill_workers)
        _, told = ended(process)
    assert len(killed) == ATTEMPTS == 3
    (failed,) = study_of(tmp_path)["variants"][0]["failed"]
    assert failed["error"].startswith("its task was lost (The worker died unexpectedly")
    assert failed["error"].endswith("), 3 times")
    assert f"plain, seed 0 failed: {failed['error']}" in told
    assert finished(tmp_path) == {}


def test_a_run_goes_from_here_to_the_cluster_and_back_to_the_same_end(
    nodes: Nodes, undisturbed: Path, tmp_path: Path
) -> None:
    """Begun here, gone on with on the cluster until Ctrl-C, ended here."""
    with started(*study("tiny-slow", *ONE), cwd=tmp_path) as process:
        until(lambda: any(epochs_in(tmp_path / "pool").values()), process)
        process.send_signal(signal.SIGINT)
        ended(process, 130)
    ((begun, epochs),) = epochs_in(tmp_path / "pool").items()
    with started(*study("tiny-slow", "--cluster", nodes.address), cwd=tmp_path) as process:
        until(lambda: nodes.epochs().get(begun, 0) > epochs or begun in finished(tmp_path), process)
        process.send_signal(signal.SIGINT)
        _, told = ended(process, 130)
    ready = finished(tmp_path)  # on a busy machine a run may end before the signal has arrived
    saved = f"stopped and saved, {len(ready)} of 4 runs finished"
    assert told[-2:] == [saved, "the same command goes on"]
    assert len(ready) < 4
    states = {path.parent.name for path in tmp_path.glob("pool/*/state.safetensors")}
    assert begun in states | ready.keys()
    assert epochs_in(tmp_path / "pool")[begun] > epochs
    apart(*study("tiny-slow", *ONE), cwd=tmp_path)
    assert contents(tmp_path / "pool") == contents(undisturbed / "pool")
    assert contents(tmp_path / "result") == contents(undisturbed / "result")


def test_a_killed_driver_leaves_the_cluster_free_and_what_came_back(
    nodes: Nodes, undisturbed: Path, tmp_path: Path
) -> None:
    words = study("tiny-slow", "--cluster", nodes.address)
    with started(*words, cwd=tmp_path) as process:
        until(lambda: finished(tmp_path) and nodes.workers(), process)
        process.kill()
        process.wait()
        before = finished(tmp_path)
    until(lambda: not nodes.workers())
    assert 1 <= len(before) < 4
    told = apart(*words, cwd=tmp_path).stderr.splitlines()
    assert told[0] == f"tiny-slow: {4 - len(before)} of 4 runs to do"
    assert before.items() <= finished(tmp_path).items()
    assert contents(tmp_path / "pool") == contents(undisturbed / "pool")
    assert contents(tmp_path / "result") == contents(undisturbed / "result")


def test_a_lost_node_takes_only_what_was_under_way_there(
    nodes: Nodes, undisturbed: Path, tmp_path: Path
) -> None:
    """The last test with these nodes: afterwards there is one."""
    with started(*study("tiny-slow", "--cluster", nodes.address, "--json"), cwd=tmp_path) as process:
        until(lambda: finished(tmp_path) and nodes.second in nodes.workers().values(), process)
        before = finished(tmp_path)
        os.kill(nodes.second, signal.SIGKILL)
        said, told = ended(process)
    assert json.loads(said) == study_of(tmp_path)  # Ray has printed nothing in between
    assert len([line for line in told if line.endswith(" finished")]) == 4
    assert before.items() <= finished(tmp_path).items()
    assert contents(tmp_path / "pool") == contents(undisturbed / "pool")
    assert contents(tmp_path / "result") == contents(undisturbed / "result")
