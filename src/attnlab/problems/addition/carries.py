"""How an adder's carry travels: patching between sums with and without one.

The base is a sum into whose column no carry comes, the donor one into which it does; all else that reaches
the place of that column's digit is the same (``pairs.carry_pairs``). What is read is the logit
of the digit with the carry less that of the digit without.
"""

from dataclasses import dataclass
from typing import ClassVar

from attnlab.analysis.patch.contrasts import PAIRS, PatchResult, Words, choose_pairs, patch_pairs
from attnlab.analysis.patch.grids import HEADS, Grid, grids, measure_grids
from attnlab.problems.addition.task import Addition, Digit
from attnlab.runs import RunFolder


@dataclass(frozen=True, kw_only=True)
class CarryResult(PatchResult):
    """What brings the carry into each column."""

    words: ClassVar[Words] = Words(
        what="carry into",
        pairs="pairs of sums with and without a carry into column",
        several="column",
        sides=("plain", "carried"),
        called=("the sum without it", "the sum with it"),
        moved="carry",
        rest="the digits that were said before",
        written=lambda shown: [int(operand) for operand in shown.split("+")],
    )

    reach: int = 1
    digit: Digit = "same"


def carried(task: Addition, run: RunFolder) -> dict[str, dict[str, float]]:
    """For each head and column the share of a carry's effect that its z restores."""
    model = run.model
    found: dict[str, dict[str, float]] = {}
    for drawn in task.contrasts(2 * PAIRS, run.spec().seed):
        patching = patch_pairs(model, choose_pairs(model, drawn, PAIRS, CarryResult.words).finding)
        (whole,) = (grid for grid in grids(patching) if grid.quantity == HEADS)
        z = Grid(HEADS, whole.rows, ["z"], [row[:1] for row in whole.sites])
        (measured,) = measure_grids(patching, [z])
        for head, (share,) in zip(measured.rows, measured.share, strict=True):
            found.setdefault(head, {})[drawn.name] = share
    return found
