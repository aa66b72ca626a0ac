"""A run that was stopped, however rudely, ends with the same bytes as one that was not."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from commands import TINY, apart, attnlab, command, environment

pytestmark = pytest.mark.slow

OPTIONS = (
    *("--model.dropout", "0.2", "--training.ema", "0.9"),
    *("--training.optimiser", "muon", "--training.schedule", "plateau:patience=1"),
)
"""All that has a state: dropout's generator, averaged weights, Muon and AdamW side by side, a plateau."""
LONG = ("--training.epochs", "26", "--checkpoint", "0.05", "--seed", "3")


def start(*words: str | Path, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*words),
        cwd=cwd,
        env=environment(cwd),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    for _ in range(3000):
        if path.exists() or process.poll() is not None:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never came")


def saved(run: Path) -> int:
    """When the training state was last saved; 0 if there is none."""
    try:
        return (run / "state.safetensors").stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def weights(run: Path) -> list[bytes]:
    return [(run / name).read_bytes() for name in ("best.safetensors", "last.safetensors")]


def without_times(run: Path) -> list[str]:
    return [line.split('"seconds"')[0] for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_killed_many_times_ends_with_the_same_bytes(tmp_path: Path) -> None:
    words = ("train", "addition", *TINY, *LONG, *OPTIONS)
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    apart(*words, "--out", whole, cwd=tmp_path)  # in this process every call is checked, which takes longer
    chance = random.Random(0)
    process = start(*words, "--out", pieces, cwd=tmp_path)
    wait_for(pieces / "spec.json", process)
    killed = 0
    while killed < 3 and process.poll() is None:
        time.sleep(chance.uniform(0.0, 0.4))
        before = saved(pieces)
        process.kill()
        process.wait()
        killed += not (pieces / "summary.json").exists()
        process = start("train", "--resume", pieces, "--checkpoint", "0.05", cwd=tmp_path)
        while process.poll() is None and saved(pieces) == before:
            time.sleep(0.01)
    process.wait()
    assert killed >= 2
    assert process.returncode == 0
    assert weights(pieces) == weights(whole)
    assert without_times(pieces) == without_times(whole)
    assert list(pieces.glob(".*.part")) == []


UNSAVED = ("train", "addition", *TINY, "--training.epochs", "20", "--seed", "3", "--checkpoint", "1000")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    apart(*UNSAVED, "--out", "whole", cwd=folder)
    return folder / "whole"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_saves_and_says_how_to_go_on(
    number: signal.Signals, undisturbed: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        command(*UNSAVED, "--out", "run"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = tmp_path / "run" / "metrics.jsonl"
    wait_for(metrics, process)
    while process.poll() is None and '"best"' not in metrics.read_text():
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped and saved in run" in said
    assert "go on with: attnlab train --resume run" in said
    assert (tmp_path / "run" / "state.safetensors").exists()
    apart("train", "--resume", "run", cwd=tmp_path)
    assert weights(tmp_path / "run") == weights(undisturbed)


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    attnlab("train", "addition", *TINY, "--out", "run", cwd=tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    done = attnlab("train", "--resume", "run", cwd=tmp_path)
    assert "finished already" in done.stderr
    assert before == {
        path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()
    }
