"""How attention and the use of positions came about in runs of the study patch-attention.

    attnlab study run patch-attention                 # leaves its runs in runs/pool
    python benchmarks/patch_probes.py                 # writes results/patch-attention/probes.json

Nothing is trained: the numbers are those that every run logs at its start and after each epoch. Seeds that
diverged are left out.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from attnlab.errors import LabError
from attnlab.problems.digits.studies import PATCH_STUDIES
from attnlab.runs import describe_environment
from attnlab.storage import write_json
from attnlab.studies.jobs import pool_run
from attnlab.studies.study import Study

VARIANTS = (
    "64/128, uniform 0.1, lr 0.01",
    "64/128, sinusoidal, lr 0.01",
    "64/128, zero, lr 0.01",
    "64/128, uniform 0.1, lr 0.1",
    "64/128, sinusoidal, lr 0.1",
    "64/128, zero, lr 0.1",
)


@dataclass(frozen=True)
class Options:
    """Where runs are and where the result goes."""

    pool: Path = Path("runs/pool")
    out: Path = Path("results/patch-attention/probes.json")


def main(options: Options) -> None:
    """Collect the probes of every variant."""
    study = PATCH_STUDIES[0]
    result = {
        "study": study.name,
        "command": "python benchmarks/patch_probes.py",
        "environment": describe_environment().to_json(),
        "seeds": list(range(study.seeds)),
        "variants": [_variant(name, study, options.pool) for name in VARIANTS],
    }
    write_json(options.out, result)
    print(f"wrote {options.out}")


def _variant(name: str, study: Study, pool: Path) -> dict[str, Any]:
    runs = [pool_run(pool, study.spec(name, seed)) for seed in range(study.seeds)]
    finished = [run for run in runs if run is not None and run.summary() is not None]
    if not finished:
        raise LabError(f"{pool} holds no finished run of {name!r}")
    probes = [run.metrics().probes for run in finished]
    steps = [line.step for line in probes[0]]
    return {
        "name": name,
        "finished": len(finished),
        "epoch": list(range(len(steps))),
        "entropy": [[line.entropy for line in each] for each in probes],
        "moved": [[line.moved for line in each] for each in probes],
    }


if __name__ == "__main__":
    main(tyro.cli(Options))
