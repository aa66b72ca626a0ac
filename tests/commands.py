"""Running the real command line in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TINY = [
    "--task.digits=2",
    "--task.train=400",
    "--task.valid=40",
    "--task.test=60",
    "--model.width=16",
    "--model.heads=2",
    "--model.hidden=32",
    "--training.batch=32",
    "--training.epochs=3",
    "--training.threads=1",
]
"""A model and a training that take a second."""


def attnlab(
    *words: str | Path, cwd: Path, stdin: str = "", code: int = 0, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run ``attnlab`` with ``words`` and check its exit code."""
    return run(command(*words), cwd=cwd, stdin=stdin, code=code, timeout=timeout)


def run(
    words: Sequence[str | Path], *, cwd: Path, stdin: str = "", code: int = 0, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run any program and check its exit code."""
    done = subprocess.run(
        words,
        cwd=cwd,
        env=environment(cwd),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-c", "from attnlab.cli.main import main; main()", *map(str, words)]


def environment(cwd: Path) -> dict[str, str]:
    return {**os.environ, "ATTNLAB_CACHE": str(cwd / "cache"), "PYTHONUNBUFFERED": ""}


def complaint(*words: str | Path, cwd: Path, stdin: str = "") -> str:
    """The one sentence with which a command refuses: exit code 2, nothing on standard output."""
    done = attnlab(*words, cwd=cwd, stdin=stdin, code=2)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("attnlab: ")
    return lines[0].removeprefix("attnlab: ")
