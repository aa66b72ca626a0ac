"""A home that cannot be written: nothing is kept there, and nobody hears of it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnlab.explicit.compiling import entry
from commands import command


def test_figures_are_drawn_without_a_word_of_the_home(tmp_path: Path) -> None:
    done = _without_home(tmp_path, "patterns", "zoo:adder", "--example", "374+814", "--out", "figures")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((tmp_path / "figures").glob("*.svg"))) == 1


def test_training_goes_on_without_a_home(tmp_path: Path) -> None:
    """With the measurement of threads, which remembers its result there."""
    small = ["--task.train=200", "--task.valid=20", "--task.test=20", "--training.epochs=1"]
    done = _without_home(tmp_path, "train", "addition", *small, "--out", "run")
    assert done.returncode == 0
    words = {line.split()[0].rstrip(":") for line in done.stderr.splitlines()}
    assert words == {"training", "epoch", "next"}


def test_a_kernel_that_cannot_be_kept_on_disk_is_compiled_all_the_same() -> None:
    found: dict[str, Callable[[Any], Any]] = {}
    exec(
        "def double(number):\n    return 2 * number", found
    )  # of no file, so there is no folder to keep it in
    assert entry(found["double"])(21) == 42


def _without_home(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    home = cwd / "home"
    home.touch()  # a file: no folder can be made in it, not even by root
    own = ("ATTNLAB_CACHE", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    environment = {key: value for key, value in os.environ.items() if key not in own}
    return subprocess.run(
        command(*words),
        cwd=cwd,
        env={**environment, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
