"""Memory of one pass by the length of a list: how it grows, and that no T x S matrix is held.

    python benchmarks/lengths_memory.py               # a table, some minutes
    python benchmarks/lengths_memory.py --json        # the same as JSON
    python benchmarks/lengths_memory.py --out results/lengths/memory.json

Every figure is one process: a model of fresh weights answers a short list, then one of the given length,
and the peak of its resident memory before and after is compared. The last way looks at the pattern, so it
has to hold it: what the others would need if they did.
"""

import json
import resource
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import tyro

from attnlab.models import build_model
from attnlab.problems.sorting import Sorting
from attnlab.runs import describe_environment
from attnlab.specs import Alibi, Relative, Rotary, TokensModel
from attnlab.storage import write_json
from attnlab.taps import edit

MODEL = TokensModel(width=64, heads=4, layers=2, hidden=256, positions=Rotary())
WAYS = {
    "window of 2": replace(MODEL, window=2),
    "all keys, rotary": MODEL,
    "all keys, log n": replace(MODEL, log_scale=12),
    "all keys, alibi": replace(MODEL, positions=Alibi()),
    "all keys, relative": replace(MODEL, positions=Relative()),
    "looking at the pattern": MODEL,
}
LOOKING = "looking at the pattern"
FAR = 4096  # a pattern of 16,384 x 16,384 would take 4 GiB a layer


@dataclass(frozen=True)
class Options:
    """What to measure."""

    lengths: tuple[int, ...] = (1024, 2048, 4096, 8192, 16_384)
    batch: int = 1
    """Lists in one pass."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    rows = []
    for way in WAYS:
        for length in options.lengths:
            if way != LOOKING or length <= FAR:
                rows.append({"way": way, "length": length, **in_a_process(way, length, options.batch)})
                if not options.json:
                    print(line(rows[-1]), flush=True)
    result = {"batch": options.batch, "rows": rows}
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        command = "python benchmarks/lengths_memory.py"
        write_json(
            options.out, {"command": command, "environment": describe_environment().to_json(), **result}
        )
    if options.json:
        print(json.dumps(result, indent=1))


def in_a_process(way: str, length: int, batch: int) -> dict[str, Any]:
    """What ``measure`` finds where nothing was measured before."""
    command = [sys.executable, __file__, "measure", way, str(length), str(batch)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


@torch.inference_mode()
def measure(way: str, length: int, batch: int) -> dict[str, float]:
    """Peak of memory that one pass adds, and its seconds."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = build_model(WAYS[way], vocabulary=2, tokens=Sorting.tokens).eval()
    tokens = torch.randint(100, (batch, length)).sort(dim=1).values
    with edit(model, {"*.pattern": lambda p: p}) if way == LOOKING else nullcontext():
        model(tokens[:, :64])
        before, began = peak(), time.perf_counter()
        model(tokens)
        seconds = time.perf_counter() - began
    return {"mib": peak() - before, "seconds": seconds}


def peak() -> float:
    """MiB that this process has held at most."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def line(row: dict[str, Any]) -> str:
    per_token = row["mib"] * 1024 / row["length"]
    name, length = row["way"], row["length"]
    return f"{name:24}{length:8,}{row['mib']:10.1f} MiB{per_token:8.1f} KiB a token{row['seconds']:9.2f} s"


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
    else:
        main(tyro.cli(Options))
