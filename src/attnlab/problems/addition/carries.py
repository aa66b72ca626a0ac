"""How an adder's carry travels: patching between sums with and without one.

The base is a sum into whose column no carry comes, the donor one into which it does; all else that reaches
the place of that column's digit is the same (``pairs.carry_pairs``). What is read is the logit
of the digit with the carry less that of the digit without. Putting values of the donor into the base is
called denoising, the other way round noising (Heimersheim and Nanda, 2024).
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.patch.carriers import GOAL, find_carriers
from attnlab.analysis.patch.grids import HEADS, Grid, Labels, count_sites, grids, measure_grids
from attnlab.analysis.patch.runs import QUANTITIES, Patching
from attnlab.analysis.patch.sites import head_site
from attnlab.analysis.statistics import proportion_interval
from attnlab.errors import InputError, LabError
from attnlab.model import Model, attentions
from attnlab.problems.addition.pairs import CarryPairs, carry_pairs
from attnlab.problems.addition.task import Addition, Digit
from attnlab.progress import Progress, silent
from attnlab.runs import Run, load_model
from attnlab.runs.weights import other_task

PAIRS = 64  # to find with, and as many to test with
FEWEST = 2
MOST = 1000  # all their values are kept in memory

Watch = Callable[[str], AbstractContextManager[Progress]]
"""Opens the progress of a piece of work that is called so."""


@final
@dataclass(frozen=True)
class Contrast:
    """Pairs of sums for one column, some to find with and as many to test with."""

    column: int
    name: str
    drawn: int
    finding: CarryPairs
    held_out: CarryPairs


def contrast(
    task: Addition,
    model: Model,
    *,
    column: int,
    pairs: int,
    reach: int = 1,
    digit: Digit = "same",
    seed: int = 0,
) -> Contrast:
    """Up to ``pairs`` pairs of each kind; only such whose two digits the model gets right."""
    generator = torch.Generator().manual_seed(seed)
    drawn = carry_pairs(task, column=column, count=2 * pairs, generator=generator, reach=reach, digit=digit)
    patching = carry_patching(task, model, drawn, quantities=("z",))
    more, less = patching.known
    kept = drawn[(said(patching.donor.given) == more) & (said(patching.base.given) == less)]
    name, half = task.places()[drawn.place], min(pairs, len(kept) // 2)
    if half < FEWEST:
        raise LabError(
            f"of {len(drawn)} pairs of sums with and without a carry into column {name} the model gets "
            f"{len(kept)} right on both sides, but {2 * FEWEST} are needed; ask for more or train longer"
        )
    return Contrast(column, name, len(drawn), kept[:half], kept[half : 2 * half])


def carry_patching(
    task: Addition, model: Model, pairs: CarryPairs, *, quantities: Sequence[str] = QUANTITIES
) -> Patching:
    """Sums without the carry as base, with it as donor, each fed its own true digits up to the column."""
    (base, less), (donor, more) = (_up_to(task, pairs.place, sums) for sums in (pairs.plain, pairs.carried))
    return Patching.between(model, base, donor, logit_difference, known=(more, less), quantities=quantities)


def _up_to(
    task: Addition, place: int, sums: Int[Tensor, "N 2"]
) -> tuple[tuple[Int[Tensor, "N S"], Int[Tensor, "N T"]], Int[Tensor, "N"]]:
    """What a model is given until it says the digit at ``place``, and that digit."""
    examples = task.examples(sums)
    source, target = examples.inputs
    return (source, target[:, : place + 1]), examples.targets[:, place]


def logit_difference(
    logits: Float[Tensor, "N T V"], more: Int[Tensor, "N"], less: Int[Tensor, "N"]
) -> Float[Tensor, "N"]:
    """Logit of ``more`` minus logit of ``less`` at the last place."""
    last, row = logits[:, -1], torch.arange(len(logits))
    return last[row, more] - last[row, less]


def said(logits: Float[Tensor, "N T V"]) -> Int[Tensor, "N"]:
    """The answer at the last place."""
    return logits[:, -1].argmax(dim=-1)


def position_labels(task: Addition, model: Model) -> Labels:
    """Source positions by operand and column, target positions by the column that is said there."""
    columns = [None if column < 0 else f"10^{column}" for column in task.source_columns().tolist()]
    operands = "a" * task.digits + "+" + "b" * task.digits
    source = [f"{side} {name}" if name else side for side, name in zip(operands, columns, strict=True)]
    target = task.places()

    def labels(tap: str, length: int) -> list[str]:
        from_memory = model.side(tap) == "input" or tap.endswith((".cross.k", ".cross.v"))
        return source if from_memory else target[:length]

    return labels


def measure_column(
    task: Addition, model: Model, pairs: Contrast, *, progress: Progress = silent
) -> dict[str, Any]:
    """What every single site restores, in both directions."""
    patching = carry_patching(task, model, pairs.finding)
    chosen = grids(patching, position_labels(task, model))
    count = count_sites(chosen)

    def from_then_on(before: int) -> Progress:
        return lambda done, _: progress(before + done, 2 * count)

    found = {
        direction: measure_grids(run, chosen, progress=from_then_on(place * count))
        for place, (direction, run) in enumerate(_both_ways(patching).items())
    }
    return {
        "column": pairs.column,
        "name": pairs.name,
        "drawn": pairs.drawn,
        "pairs": len(pairs.finding),
        "held_out": len(pairs.held_out),
        "difference": {
            "plain": float(patching.base.values.mean()),
            "carried": float(patching.donor.values.mean()),
        },
        "example": {side: getattr(pairs.finding, side)[0].tolist() for side in ("plain", "carried")},
        **found,
    }


def measure_carriers(
    task: Addition,
    model: Model,
    columns: Sequence[Contrast],
    *,
    goal: float = GOAL,
    progress: Progress = silent,
) -> dict[str, Any]:
    """The smallest set of heads that carries the carry into ``columns``, tested on the pairs held out."""
    seen = ("z", "out")
    groups = [carry_patching(task, model, each.finding, quantities=seen) for each in columns]
    found = find_carriers(groups, goal=goal, progress=progress)
    return {
        "columns": [each.column for each in columns],
        "goal": goal,
        **asdict(found),
        "smallest": found.smallest,
        "held_out": [
            {
                "column": each.column,
                "name": each.name,
                "pairs": len(each.held_out),
                **_tested(carry_patching(task, model, each.held_out, quantities=seen), found.heads),
            }
            for each in columns
            if found.heads is not None
        ],
    }


def _tested(patching: Patching, heads: Sequence[str]) -> dict[str, Any]:
    """Share restored and answers flipped to the donor's, in both directions."""
    sites = [head_site(head) for head in heads]
    found = {}
    for (direction, run), donor_digit in zip(_both_ways(patching).items(), patching.known, strict=True):
        given = run.given(sites)
        (share,) = run.shares(run.read(given, *run.known)[None])
        flipped = int((said(given) == donor_digit).sum())
        found[direction] = {
            "share": share.value,
            "interval": list(share.interval),
            "flipped": flipped / len(run),
            "flipped_interval": list(proportion_interval(flipped, len(run))),
        }
    return found


def _both_ways(patching: Patching) -> dict[str, Patching]:
    return {"denoising": patching, "noising": patching.turned()}


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


def patch_run(
    run: Run,
    *,
    column: int | None = None,
    pairs: int = PAIRS,
    reach: int = 1,
    digit: Digit = "same",
    watch: Watch = lambda _: nullcontext(silent),
) -> dict[str, Any]:
    """Patch between sums with and without a carry into ``column``, or into each; keep it in the run."""
    if not 1 < pairs <= MOST:
        raise InputError(f"--pairs is {pairs}; it must be from 2 to {MOST:,}")
    task, model = run.spec().task, load_model(run)
    if not isinstance(task, Addition):
        raise other_task(run, Addition.kind)
    if not attentions(model):
        raise LabError(f"run {run.name} has no attention left, so it has no heads to patch")
    columns = [column] if column is not None else range(max(1, reach), max(task.digits, reach) + 1)
    contrasts = [
        contrast(task, model, column=each, pairs=pairs, reach=reach, digit=digit, seed=run.spec().seed)
        for each in columns
    ]
    found = []
    for each in contrasts:
        with watch(f"patching, carry into {each.name}") as progress:
            found.append(measure_column(task, model, each, progress=progress))
    carriers = []
    alone = [[each] for each in contrasts]
    for group in [*alone, contrasts] if len(contrasts) > 1 else alone:
        with watch(f"trying sets of heads, {', '.join(each.name for each in group)}") as progress:
            carriers.append(measure_carriers(task, model, group, progress=progress))
    result = {"run": run.name, "reach": reach, "digit": digit, "columns": found, "carriers": carriers}
    run.keep_analysis("patch", result)
    return result
