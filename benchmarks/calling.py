"""Commands as a user types them, in a process of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def call(*words: str | Path, variables: Mapping[str, str] | None = None) -> tuple[dict[str, Any], float]:
    """What ``attnlab WORDS --json`` prints, and the most memory it held in MiB.

    ``variables`` are added to the environment.
    """
    start = [sys.executable, "-c", "from attnlab.cli.main import main; main()", *map(str, words), "--json"]
    environment = {**os.environ, **(variables or {})}
    process = subprocess.Popen(start, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(process.returncode)
    return json.loads(text), usage.ru_maxrss / 1024


def chosen_threads(run: Path) -> int:
    """The threads that a run was trained with."""
    environment = json.loads(Path(run, "environment.json").read_text(encoding="utf-8"))
    return int(environment["chosen_threads"])
