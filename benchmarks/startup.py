"""How long ``import attnlab`` takes beside ``import torch``, and commands that need no torch.

    python benchmarks/startup.py              # a table, about two minutes on an idle core
    python benchmarks/startup.py --json       # the same as JSON
    python benchmarks/startup.py --out results/startup/startup.json

Each way is a process of its own, started so often, in turn with the others; what is told are medians of
wall time, from the start of the process to its end, and of the ratio to ``import torch`` in the same round.
The first round, which reads files from the disk, is not counted. ``modules`` are those of Python that were
imported.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import tyro

from attnlab.runs import describe_environment
from attnlab.storage import write_json

BESIDE = "import torch"
CODE = {
    "nothing": "pass",
    BESIDE: "import torch",
    "import attnlab": "import attnlab",
    "import attnlab, all public names": "import attnlab; [getattr(attnlab, n) for n in attnlab.__all__]",
    "attnlab.load": "import attnlab; attnlab.load('zoo:adder')",
    "attnlab.load and its model": "import attnlab; attnlab.load('zoo:adder').model",
}
COMMANDS = {
    f"attnlab {words}": f"import sys; from attnlab.cli.main import run; run({words.split()!r})"
    for words in ("--help", "runs", "study list")
}
LAST = "; import sys; print(len(sys.modules), 'torch' in sys.modules, file=sys.stderr)"


@dataclass(frozen=True)
class Options:
    """What to measure."""

    rounds: int = 9
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    result: dict[str, Any] = {"rounds": options.rounds, "ways": measure(options.rounds)}
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        about = {"command": "python benchmarks/startup.py", "environment": describe_environment().to_json()}
        write_json(options.out, {**about, **result})
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, row in result["ways"].items():
        print(
            f"{name:<34} {row['seconds']:.3f} s   {row['beside_torch']:.2f} of torch's   "
            f"{row['modules']:>5} modules{', torch' if row['torch'] else ''}"
        )


def measure(rounds: int) -> dict[str, Any]:
    """Medians by the name of the way."""
    ways = {**CODE, **COMMANDS}
    timed: dict[str, list[float]] = {name: [] for name in ways}
    said = {}
    for number in range(rounds + 1):
        for name, code in ways.items():
            seconds, said[name] = start(code)
            if number:
                timed[name].append(seconds)
    return {
        name: {
            "seconds": median(seconds),
            "beside_torch": median(a / b for a, b in zip(seconds, timed[BESIDE], strict=True)),
            "each": seconds,
            **said[name],
        }
        for name, seconds in timed.items()
    }


def start(code: str) -> tuple[float, dict[str, Any]]:
    """The seconds that a process takes for ``code``, how many modules it has then, and whether torch."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code + LAST], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - began
    count, torch = done.stderr.splitlines()[-1].split()
    return seconds, {"modules": int(count), "torch": torch == "True"}


if __name__ == "__main__":
    main(tyro.cli(Options))
