"""``attnlab doctor --machine``: what a bug report should say."""

import json
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from attnlab.cores import own_cores
from attnlab.runs import machine
from attnlab.runs.machine import describe_machine
from commands import attnlab, complaint


def test_versions_processor_cores_and_threads(tmp_path: Path) -> None:
    found = json.loads(attnlab("doctor", "--machine", "--json", cwd=tmp_path).stdout)
    assert found["environment"]["attnlab"] == version("attnlab")
    assert found["environment"]["cores"] == os.cpu_count()
    assert found["usable_cores"] == len(own_cores())
    assert found["packages"]["torch"] == version("torch")
    assert "pytest" not in found["packages"]
    lines = attnlab("doctor", "--machine", cwd=tmp_path).stdout.splitlines()
    told = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
    assert told["attnlab"].startswith(version("attnlab"))
    assert told["cores"] == f"{os.cpu_count()}, of which {len(own_cores())} may be used"
    assert f"torch {version('torch')}" in told["packages"]


def test_what_is_not_known_or_not_set_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory", lambda: sys.maxsize)
    monkeypatch.setattr(machine, "requires", lambda _: ["numpy>=2", "no-such-package; extra == 'x'"])
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = describe_machine()
    assert found.packages == {"numpy": version("numpy")}
    assert "OMP_NUM_THREADS" not in found.variables
    assert "memory" not in found.to_json()
    assert re.search(r"^memory +unknown$", "\n".join(map(str, found.tables())), re.MULTILINE)


def test_a_run_or_the_machine(tmp_path: Path) -> None:
    assert "name a run folder or a shipped run" in complaint("doctor", cwd=tmp_path)
    assert "leave out the run" in complaint("doctor", "zoo:adder", "--machine", cwd=tmp_path)
