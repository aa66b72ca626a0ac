"""Which heads bring a carry: one number for each head and column, to compare runs by."""

from attnlab.analysis.patch.grids import HEADS, Grid, grids, measure_grids
from attnlab.problems.addition.carries import carry_patching, contrast
from attnlab.problems.addition.task import Addition
from attnlab.runs import Run, load_model

PAIRS = 64


def carried(task: Addition, run: Run) -> dict[str, dict[str, float]]:
    """For each head and column the share of a carry's effect that its z restores."""
    model = load_model(run)
    found: dict[str, dict[str, float]] = {}
    for column in range(1, task.digits + 1):
        pairs = contrast(task, model, column=column, pairs=PAIRS, seed=run.spec().seed)
        patching = carry_patching(task, model, pairs.finding)
        (whole,) = (grid for grid in grids(patching) if grid.quantity == HEADS)
        z = Grid(HEADS, whole.rows, ["z"], [row[:1] for row in whole.sites])
        (measured,) = measure_grids(patching, [z])
        for head, (share,) in zip(measured["rows"], measured["share"], strict=True):
            found.setdefault(head, {})[pairs.name] = share
    return found
