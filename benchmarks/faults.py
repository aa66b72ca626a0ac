"""What becomes of runs under kills, losses of power, damage, full disks, limits and jumps of the clock.

    PYTHONPATH=tests python benchmarks/faults.py                               # some 20 minutes of one core
    PYTHONPATH=tests python benchmarks/faults.py --parts kills power
    PYTHONPATH=tests python benchmarks/faults.py --out results/faults/faults.json

Every case is real: processes are killed by SIGKILL, at random moments and inside writes; what a training
does to its files is recorded by a preloaded library and played back without what was not flushed
(``tests/powerloss.py``); each file of a finished and of a stopped run gets bits flipped, its end cut off
and blocks of zeros; disks are full by a limit or by a small one that is mounted. Afterwards the run is used
again, and what it ends with is compared with an unbroken one.

With ``--out`` the counts are kept after every few cases; the same command goes on where it was stopped.
"""

import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import tyro
from faults_cases import (
    Bench,
    Damaging,
    fill_disk,
    jump,
    kill_explorer,
    kill_searches,
    kill_trainings,
    limit,
    lose,
    read_only,
    write_together,
)
from faults_children import Row, scratch

import attnlab  # noqa: F401  # before torch
from attnlab.runs import describe_environment
from attnlab.storage import make_folder, write_json
from powerloss import compiler

Part = Literal["kills", "power", "damage", "disk", "limits", "clock", "writers"]
Do = Callable[[Bench, Row, random.Random], None]
CASES: dict[tuple[Part, str], tuple[int, Do]] = {
    ("kills", "addition"): (80, kill_trainings),
    ("kills", "muon"): (60, kill_trainings),
    ("kills", "explicit"): (40, kill_trainings),
    ("kills", "explorer"): (10, kill_explorer),
    ("kills", "sweep"): (20, kill_searches),
    ("kills", "study"): (20, kill_searches),
    ("power", "addition"): (60, lose),
    ("power", "muon"): (40, lose),
    ("disk", "file size"): (12, fill_disk),
    ("disk", "full"): (12, fill_disk),
    ("disk", "read-only"): (4, read_only),
    ("limits", "memory"): (12, limit),
    ("limits", "open files"): (12, limit),
    ("clock", "jumps"): (12, jump),
    ("writers", "train one run"): (10, write_together),
    ("writers", "take one name"): (20, write_together),
    ("writers", "keep analyses"): (10, write_together),
}
"""How many cases of each there are to be; ``damage`` has a number of its own."""
DAMAGED = 5000
KEEP = 5
"""Cases after which the counts are kept; of damage a hundred times as many."""


@dataclass(frozen=True)
class Options:
    """Which cases."""

    parts: tuple[Part, ...] = ("kills", "power", "damage", "disk", "limits", "clock", "writers")
    share: float = 1.0
    """Of the cases, to try it."""
    out: Path | None = None
    """A file for the counts."""


def main(options: Options) -> int:
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    rows, could_not = earlier(options.out), list[str]()
    place = scratch("runs")
    try:
        bench = Bench(place)
        for (part, case), (wanted, do) in CASES.items():
            if part not in options.parts:
                continue
            if (reason := missing(part, case)) is not None:
                could_not.append(f"{part}, {case}: {reason}")
                continue
            row = rows.setdefault((part, case), Row(part, case))
            for number in left(row, wanted * options.share):
                do(bench, row, random.Random(f"{part}/{case}/{number}"))
                if row.counts["tried"] // KEEP > number // KEEP:  # a case may count as several
                    keep(options.out, rows, could_not)
            print(f"{part:8}{case:16}{row.counts}", flush=True)
        if "damage" in options.parts:
            damage(bench, rows, options, could_not)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    keep(options.out, rows, could_not)
    return 0 if all(row.nothing_lost for row in rows.values()) else 1


def left(row: Row, wanted: float) -> Iterator[int]:
    """Numbers of cases until there are enough."""
    while row.counts["tried"] < wanted:
        yield row.counts["tried"]


def damage(bench: Bench, rows: dict[tuple[str, str], Row], options: Options, could_not: list[str]) -> None:
    damaging = Damaging(bench)
    row = rows.setdefault(("damage", "every file"), Row("damage", "every file"))
    for number in left(row, DAMAGED * options.share):
        damaging.once(row, number, random.Random(f"damage/{number}"))
        if number % (100 * KEEP) == 0:
            keep(options.out, rows, could_not)
    print(f"damage  every file {row.counts} of {len(damaging.files)} files", flush=True)


def missing(part: Part, case: str) -> str | None:
    """Why a case cannot be tried here."""
    if part == "power" and compiler() is None:
        return "needs a C compiler"
    if case == "full" and (os.geteuid() != 0 or not shutil.which("mount")):
        return "a small disk can be mounted by root only"
    return None


def earlier(out: Path | None) -> dict[tuple[str, str], Row]:
    """The rows of a file that is there."""
    if out is None or not out.exists():
        return {}
    found = json.loads(out.read_text(encoding="utf-8"))["rows"]
    rows = [Row(row["part"], row["case"], row["counts"], row["slowest"], row["notes"]) for row in found]
    return {(row.part, row.case): row for row in rows}


def keep(out: Path | None, rows: dict[tuple[str, str], Row], could_not: list[str]) -> None:
    if out is None:
        return
    make_folder(out.parent)
    found: dict[str, Any] = {
        "command": "PYTHONPATH=tests python benchmarks/faults.py --out results/faults/faults.json",
        "environment": describe_environment().to_json(),
        "rows": [{**asdict(row), "nothing_lost": row.nothing_lost} for row in rows.values()],
        "could_not": could_not,
    }
    write_json(out, found)


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
