"""What it costs that every file of a run is held against its manifest.

    python benchmarks/integrity.py                                        # a minute on an idle core
    python benchmarks/integrity.py --out results/integrity/integrity.json

Each command is a process of its own, started so often. In it the functions that read and write manifests
and compute digests are timed; ``checks`` is what they took and ``command`` what the process took, both in
processor seconds, of which the share is made; medians over the rounds. ``files`` is how many were checked.
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import tyro

from attnlab.runs import describe_environment
from attnlab.storage import write_json

TINY = "--width 16 --heads 2 --digits 1 --train 2000 --valid 100 --test 100 --epochs 20 --threads 1"
COMMANDS = {
    "predict": "predict zoo:adder 374+814",
    "show": "show zoo:grid --samples 2",
    "evaluate": "evaluate zoo:sorter --split valid",
    "heads": "heads zoo:adder",
    "train": f"train addition {TINY} --checkpoint 1 --out {{folder}}/run",
    "runs": "runs {folder}/runs",
}
LISTED = 20
"""Copies of a shipped run that ``runs`` lists."""
INSIDE = """
import sys, time
from attnlab.runs import files, manifest
spent, depth, calls = [0.0], [0], [0]

def timed(owner, name, counts=False):
    really = getattr(owner, name)

    def call(*given, **named):
        calls[0] += counts
        depth[0] += 1
        began = time.process_time()
        try:
            return really(*given, **named)
        finally:
            depth[0] -= 1
            if not depth[0]:
                spent[0] += time.process_time() - began

    setattr(owner, name, call)

for name in ("look_at_manifest", "read_manifest", "bind", "_write"):
    timed(files, name)
timed(manifest.Bound, "fits", counts=True)
from attnlab.cli.main import run
code = run(sys.argv[1:])
print(f"\\n@ {spent[0]} {time.process_time()} {calls[0]}", file=sys.stderr)
sys.exit(code)
"""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    rounds: int = 5
    only: tuple[str, ...] = tuple(COMMANDS)
    """Some of these."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    found = {name: measure(COMMANDS[name], options.rounds) for name in options.only}
    for name, row in found.items():
        print(
            f"{name:10}{row['checks'] * 1000:8.1f} ms of {row['command']:6.2f} s"
            f"{100 * row['share']:8.2f} %{row['files']:6} files checked"
        )
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "command": "python benchmarks/integrity.py",
            "environment": describe_environment().to_json(),
        }
        write_json(options.out, {**about, "rounds": options.rounds, "commands": found})


def measure(words: str, rounds: int) -> dict[str, Any]:
    """Medians over the rounds."""
    rows = [once(words) for _ in range(rounds)]
    checks, command = (median(row[place] for row in rows) for place in (0, 1))
    share = median(row[0] / row[1] for row in rows)
    return {
        "words": words,
        "checks": checks,
        "command": command,
        "share": share,
        "files": int(rows[0][2]),
        "rounds": [list(row) for row in rows],
    }


def once(words: str) -> tuple[float, ...]:
    """Seconds of the checks and of the whole command, and how many files were checked."""
    with tempfile.TemporaryDirectory() as folder:
        if words.startswith("runs"):
            for number in range(LISTED):
                shutil.copytree(Path("src/attnlab/zoo/sorter"), Path(folder, "runs", str(number)))
        start = [sys.executable, "-c", INSIDE, *words.format(folder=folder).split()]
        done = subprocess.run(start, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return tuple(float(word) for word in done.stderr.splitlines()[-1].removeprefix("@ ").split())


if __name__ == "__main__":
    main(tyro.cli(Options))
