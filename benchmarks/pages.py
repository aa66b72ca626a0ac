"""Seconds until the page about a shipped run is there, with all of its figures.

    python benchmarks/pages.py                       # a table, some minutes on two idle cores
    python benchmarks/pages.py --json                # the same as JSON
    python benchmarks/pages.py --out results/report/speed.json

By the command that a user types, with its start, on 1,000 samples: training, strata, heads, maps, reasons,
projections, mistakes.
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from calling import call

from attnlab.runs import describe_environment
from attnlab.storage import write_json


@dataclass(frozen=True)
class Options:
    """What to measure."""

    runs: tuple[str, ...] = ("zoo:adder", "zoo:sorter", "zoo:digit", "zoo:grid")
    samples: int = 1000
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    rows = [page(run, options.samples) for run in options.runs]
    found = {"command": "python benchmarks/pages.py", "samples": options.samples, "rows": rows}
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, {**found, "environment": describe_environment().to_json()})
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for row in rows:
            print(f"{row['run']:12}{row['seconds']:6.1f} s{row['bytes'] / 1e6:6.2f} MB")


def page(run: str, samples: int) -> dict[str, Any]:
    """Seconds and size of one page."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "page.html")
        began = time.perf_counter()
        call("report", run, "--samples", str(samples), "--out", out)
        return {"run": run, "seconds": time.perf_counter() - began, "bytes": out.stat().st_size}


if __name__ == "__main__":
    main(tyro.cli(Options))
