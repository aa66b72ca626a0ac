"""Running the real command line, in this process or in one of its own."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from attnlab.cli import main

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


@dataclass(frozen=True)
class Said:
    """What a command wrote."""

    stdout: str
    stderr: str


def attnlab(*words: str | Path, cwd: Path, stdin: str = "", code: int = 0) -> Said:
    """Run ``attnlab`` with ``words`` and check its exit code.

    In this process, since starting one takes longer than most of what tests ask for.
    """
    out, error = io.StringIO(), io.StringIO()
    with _inside(cwd), redirect_stdout(out), redirect_stderr(error), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        found = _exit_code([*map(str, words)])
    assert found == code, out.getvalue() + error.getvalue()
    return Said(out.getvalue(), error.getvalue())


def printed(code: str, *, cwd: Path) -> list[str]:
    """The lines that Python from a page prints, run in this process."""
    out = io.StringIO()
    with _inside(cwd), redirect_stdout(out):
        exec(compile(code, "page", "exec"), {"__name__": "page"})
    return out.getvalue().splitlines()


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in a folder, with a cache of its own; torch goes on as if nothing had been."""
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    with chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLAB_CACHE", str(folder / "cache"))
        yield
    torch.set_rng_state(state)
    torch.set_num_threads(threads)


def apart(*words: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, for what leaves threads or servers behind."""
    return run(command(*words), cwd=cwd, code=code)


def _exit_code(words: list[str]) -> int:
    try:
        return main.run(words)
    except SystemExit as leaving:  # help
        return int(leaving.code or 0)


def run(
    words: Sequence[str | Path], *, cwd: Path, stdin: str = "", code: int = 0, timeout: float = 1200
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
