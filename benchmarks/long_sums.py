"""Why a model adds numbers longer than its lessons: its heads, and the way of a carry, at 50 digits.

    python benchmarks/long_sums.py

Asks the shipped run ``zoo:long-adder``: how much weight each head gives to the digits of its own column and
to those that decide a carry, at the longest operands of training and at 50 digits; and what part of a
carry's effect each head's output restores when it alone is patched into the sum without the carry.
Writes ``results/addition-length/why.json``.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from attnlab.analysis.heads import describe_heads
from attnlab.analysis.patch.contrasts import PAIRS, choose_pairs, patch_pairs
from attnlab.analysis.patch.grids import HEADS, Grid, grids, measure_grids
from attnlab.analysis.subjects import subject_of
from attnlab.problems.addition import Addition
from attnlab.problems.addition.carries import CarryResult
from attnlab.problems.addition.draws import carrying_sums
from attnlab.runs import RunFolder, describe_environment, open_run
from attnlab.specs import to_json
from attnlab.storage import write_json

CARRIES = ((1, 1), (10, 1), (25, 1), (49, 1), (50, 1), (25, 3))
"""The column into which a carry comes, and from how far below."""
SEED = 7


@dataclass(frozen=True)
class Options:
    """What to do."""

    run: str = "zoo:long-adder"
    """A run that adds numbers of several lengths."""
    length: int = 50
    """Digits of the long operands."""
    sums: int = 200
    """How many of them heads are measured on."""
    out: Path = Path("results/addition-length/why.json")
    """The file to write."""


def main(options: Options) -> None:
    run = open_run(options.run)
    task = run.spec().task
    if not isinstance(task, Addition) or not task.shortest:
        sys.exit(f"--run is {options.run!r}; it must add numbers of several lengths")
    found = {
        "command": "python benchmarks/long_sums.py",
        "run": run.name,
        "environment": describe_environment().to_json(),
        "seed": SEED,
        "length": options.length,
        "heads": {
            str(length): weights(task, run, length, options.sums)
            for length in (task.digits, options.length)
        },
        "carries": [
            {"column": column, "reach": reach, **carried(task, run, options.length, column, reach)}
            for column, reach in CARRIES
        ],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, to_json(found))


def weights(task: Addition, run: RunFolder, length: int, count: int) -> dict[str, dict[str, float]]:
    """What each head gives to keys that mean something, on uniform sums of one length."""
    examples = carrying_sums(task, count, length, "uniform", SEED)
    subject = subject_of(task, run.model, examples)
    found = describe_heads(subject, task.key_sets(examples, run.spec().model))
    return {each.head: {name: cell.value for name, cell in each.metrics.items()} for each in found.heads}


def carried(task: Addition, run: RunFolder, length: int, column: int, reach: int) -> dict[str, Any]:
    """The share of a carry's effect that the output of each head restores by itself."""
    longer = replace(task, digits=length, shortest=length)
    (drawn,) = longer.contrasts(2 * PAIRS, SEED, column=column, reach=reach)
    chosen = choose_pairs(run.model, drawn, PAIRS, CarryResult.words).finding
    patching = patch_pairs(run.model, chosen)
    (whole,) = (grid for grid in grids(patching) if grid.quantity == HEADS)
    (measured,) = measure_grids(
        patching, [Grid(HEADS, whole.rows, ["z"], [row[:1] for row in whole.sites])]
    )
    return {
        "pairs": len(chosen),
        "restored": {head: row[0] for head, row in zip(measured.rows, measured.share, strict=True)},
    }


if __name__ == "__main__":
    main(tyro.cli(Options))
