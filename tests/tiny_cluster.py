"""A Ray cluster of two nodes on 127.0.0.1, and studies on it that can be disturbed."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from commands import command, environment

ROOT = Path(__file__).parent.parent
CATALOGUE = Path(__file__).parent / "tiny_studies.py"
TASK = "ray::_do_remotely"  # what Ray calls a process while it does a job
MINUTES = 600.0  # seconds; nothing waits so long unless the machine is very busy


@final
@dataclass
class Nodes:
    """The cluster of ``scripts/local-cluster``; its files and those of its jobs are in one folder."""

    process: subprocess.Popen[str]
    folder: Path
    address: str = ""
    second: int = 0
    """The process that is the second node."""

    def workers(self) -> dict[int, int]:
        """The process of every job under way, and the node it runs on."""
        family = processes()
        nodes = {
            pid
            for pid, (parent, name) in family.items()
            if parent == self.process.pid and "raylet/raylet" in name
        }
        return {
            pid: parent
            for pid, (parent, name) in family.items()
            if parent in nodes and name.startswith(TASK)
        }

    def epochs(self) -> dict[str, int]:
        """How many epochs every run under way has behind it."""
        pools = self.folder.glob("attnlab-*")
        return {run: count for pool in pools for run, count in epochs_in(pool).items()}


def epochs_in(pool: Path) -> dict[str, int]:
    """How many epochs every run in a pool has behind it."""
    with suppress(FileNotFoundError):  # a folder that goes while one looks
        logs = pool.glob("*/metrics.jsonl")
        return {log.parent.name: log.read_text().count('"event": "epoch"') for log in logs}
    return {}


def processes() -> dict[int, tuple[int, str]]:
    """Parent and command line of every process."""
    listed = subprocess.run(
        ["ps", "-Aww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines() if "<defunct>" not in line]
    return {int(pid): (int(parent), " ".join(name)) for pid, parent, *name in rows}


def descendants(pid: int) -> set[int]:
    family = processes()
    found = {pid}
    while more := {child for child, (parent, _) in family.items() if parent in found} - found:
        found |= more
    return found


@contextmanager
def local_cluster() -> Iterator[Nodes]:
    with tempfile.TemporaryDirectory(prefix="nodes-", ignore_cleanup_errors=True) as name:  # sockets: short
        nodes = Nodes(
            subprocess.Popen(
                [ROOT / "scripts/local-cluster"],
                stdin=subprocess.PIPE,  # ends the cluster when this process is gone, whatever the reason
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "TMPDIR": name},
            ),
            Path(name),
        )
        assert nodes.process.stdout is not None
        assert nodes.process.stdin is not None
        try:
            nodes.address = nodes.process.stdout.readline().strip()
            nodes.second = int(nodes.process.stdout.readline())
            yield nodes
        finally:
            family = descendants(nodes.process.pid)
            nodes.process.stdin.close()
            assert nodes.process.wait(60) == 0
            nodes.process.stdout.close()
        until(lambda: not family & processes().keys())


@contextmanager
def started(*words: str | Path, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A command under way; seen out, or killed if the test fails meanwhile."""
    cwd.mkdir(exist_ok=True)
    process = subprocess.Popen(
        command(*words),
        cwd=cwd,
        env=environment(cwd),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(condition: Callable[[], Any], during: subprocess.Popen[str] | None = None) -> None:
    """Wait for something to come true while a command is under way."""
    end = time.monotonic() + MINUTES
    while not condition():
        assert time.monotonic() < end
        assert during is None or during.poll() is None, "the command has ended before it could be disturbed"
        time.sleep(0.1)


def ended(process: subprocess.Popen[str], code: int = 0) -> tuple[str, list[str]]:
    """What a command has said and told by its end."""
    said, told = process.communicate(timeout=MINUTES)
    assert process.returncode == code, told
    return said, told.splitlines()


def study(name: str, *words: str | Path) -> list[str | Path]:
    return ["study", "run", name, "--catalogue", CATALOGUE, "--pool", "pool", "--out", "result", *words]


def contents(folder: Path) -> dict[str, Any]:
    """Every file as it is, but for what depends on the clock."""
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    hidden = {name for name in files if any(part.startswith(".") for part in name.parts)}
    return {str(name): content(files[name]) for name in files.keys() - hidden}


def content(path: Path) -> Any:
    if path.name == "metrics.jsonl":
        return [lasting(json.loads(line)) for line in path.read_text().splitlines()]
    if path.name in ("summary.json", "study.json", "environment.json", "trials.json"):
        return lasting(json.loads(path.read_text()))
    if path.name == "observed.json":  # it knows where a training was stopped
        return sorted(json.loads(path.read_text()))
    if path.name == "manifest.json":
        files = json.loads(path.read_text())["files"]
        return {  # what it held before as well, if it was stopped meanwhile, is no difference
            name: (bound["sha256"], bound["size"]) if name.endswith((".safetensors", ".py")) else 0
            for name, bound in files.items()
        }
    return path.read_bytes()


def lasting(data: Any) -> Any:
    """Without seconds, and without the commit, which changes while somebody works on the sources."""
    if isinstance(data, dict):
        clock = ("seconds", "timings", "commit", "commits")
        return {key: lasting(value) for key, value in data.items() if key not in clock}
    return data


def study_of(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "result/study.json").read_text())
    assert isinstance(found, dict)
    return found


def finished(folder: Path) -> dict[str, int]:
    """When the weights of every finished run were written."""
    summaries = folder.glob("pool/*/summary.json")
    return {path.parent.name: (path.parent / "last.safetensors").stat().st_mtime_ns for path in summaries}
