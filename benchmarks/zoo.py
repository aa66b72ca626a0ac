"""What commands find in shipped models, kept with command and machine.

    python benchmarks/zoo.py                                # about half an hour on two cores
    python benchmarks/zoo.py --only heads/sorter ablation/sorter

Writes ``results/heads/adder.json`` and so on, from which pages take tables and pictures.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro
from calling import call

from attnlab.runs import describe_environment
from attnlab.storage import write_json

ZOO = ("adder", "sorter", "digit", "grid")
COMMANDS = {
    "heads/adder": ("heads", "zoo:adder"),
    "ablation/adder": ("ablate", "zoo:adder", "--split", "test", "--pairs", "--shapley", "100"),
    "patching/adder": ("patch", "zoo:adder", "--pairs", "200"),
    "heads/sorter": ("heads", "zoo:sorter"),
    "ablation/sorter": ("ablate", "zoo:sorter", "--split", "test", "--pairs"),
    **{f"explain/{name}": ("explain", f"zoo:{name}", "--many", "60") for name in ZOO},
}


@dataclass(frozen=True)
class Options:
    """What to do."""

    only: tuple[str, ...] = tuple(COMMANDS)
    """Some of these, by folder and file."""
    results: Path = Path("results")
    """The folder to write into."""


def main(options: Options) -> None:
    for name in options.only:
        if name not in COMMANDS:
            sys.exit(f"--only is {name!r}; it must be of {', '.join(COMMANDS)}")
        words = COMMANDS[name]
        found, _ = call(*words)
        path = options.results / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        origin = {"command": f"attnlab {' '.join(words)}", "environment": describe_environment().to_json()}
        write_json(path, origin | found)


if __name__ == "__main__":
    main(tyro.cli(Options))
