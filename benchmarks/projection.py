"""Seconds of a projection, from vectors to points, clusters and numbers.

    python benchmarks/projection.py                   # a table, about a minute on two idle cores
    python benchmarks/projection.py --json            # the same as JSON
    python benchmarks/projection.py --out results/projections/speed.json

The vectors are ten clouds that overlap; how long t-SNE takes hardly depends on what it is given. Imports
are left out. ``cpu`` is the time of all threads together, which tells about other work on the machine.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from attnlab.analysis.choices import ProjectionMethod
from attnlab.analysis.project.projection import project, scores
from attnlab.runs import describe_environment
from attnlab.storage import write_json


@dataclass(frozen=True)
class Options:
    """What to measure."""

    points: int = 5000
    width: int = 64
    methods: tuple[ProjectionMethod, ...] = ("tsne", "pca-hdbscan", "pca-kmeans")
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    result = measure(options)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        command = "python benchmarks/projection.py"
        write_json(
            options.out, {"command": command, "environment": describe_environment().to_json(), **result}
        )
    lines = [
        f"{name:14}{spent['seconds']:8.1f} s{spent['cpu']:8.1f} s cpu"
        for name, spent in result["methods"].items()
    ]
    print(json.dumps(result, indent=1) if options.json else "\n".join(lines))


def measure(options: Options) -> dict[str, Any]:
    chance = np.random.default_rng(0)
    labels = np.arange(options.points) % 10
    centres = 2 * chance.normal(size=(10, options.width))
    vectors = chance.normal(size=(options.points, options.width)) + centres[labels]
    project(vectors[:50], "tsne", classes=10)  # imports
    spent = {method: timed(vectors, labels, method) for method in options.methods}
    return {"points": options.points, "width": options.width, "methods": spent}


def timed(vectors: Any, labels: Any, method: ProjectionMethod) -> dict[str, float]:
    began, busy = time.perf_counter(), time.process_time()
    found = project(vectors, method, classes=10)
    scores(vectors, labels, found)
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - busy}


if __name__ == "__main__":
    main(tyro.cli(Options))
