"""What the commands about heads find in the shipped adder, kept with command and machine.

    python benchmarks/adder_heads.py                  # about ten minutes on two cores

Writes ``results/heads/adder.json``, ``results/ablation/adder.json`` and ``results/patching/adder.json``,
from which the pages about heads take their tables and pictures.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from attnlab.runs import describe_environment
from attnlab.storage import write_json

RUN = "zoo:adder"
COMMANDS = {
    "heads": ("heads", RUN),
    "ablation": ("ablate", RUN, "--split", "test", "--pairs", "--shapley", "100"),
    "patching": ("patch", RUN, "--pairs", "200"),
}


@dataclass(frozen=True)
class Options:
    """What to do."""

    only: tuple[str, ...] = tuple(COMMANDS)
    """Some of heads, ablation and patching."""
    results: Path = Path("results")
    """The folder to write into."""


def main(options: Options) -> None:
    for name in options.only:
        words = COMMANDS[name]
        start = [sys.executable, "-c", "from attnlab.cli.main import main; main()", *words, "--json"]
        done = subprocess.run(start, stdout=subprocess.PIPE, text=True, check=True)
        path = options.results / name / "adder.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        origin = {"command": f"attnlab {' '.join(words)}", "environment": describe_environment()}
        write_json(path, origin | json.loads(done.stdout))


if __name__ == "__main__":
    main(tyro.cli(Options))
