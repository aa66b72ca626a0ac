"""What each head of a run does, as numbers that can be compared with those of another run's heads.

    looks     weight on sets of keys, and entropy; of a decoder at each place of the answer
    costs     exact match lost when the head is taken out towards its mean: overall, by stratum, by place
    carries   share of the logit difference that its z restores, by column; adders only

All go from about 0 to 1. The name of a head is no part of it: which index or layer a head has is chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from attnlab.analysis.ablate import Ablation, ablate
from attnlab.analysis.ablate.ablation import TRAINING
from attnlab.analysis.heads import heads_run
from attnlab.analysis.heads.summary import Metric
from attnlab.analysis.patch.carry import carry_patching, contrast
from attnlab.analysis.patch.grids import HEADS, Grid, grids, measure_grids
from attnlab.analysis.subjects import load_subject
from attnlab.models import Seq2Seq
from attnlab.problems.addition import Addition
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import Run, load_model
from attnlab.runs.weights import other_task

PARTS = ("looks", "costs", "carries")
LOOKS = ("entropy", "diagonal", "previous", "column", "partner", "carry_in", "no_carry_in", "operator")
LAST = "end"  # what a head does where only the end token is left to say is not its work
EXAMPLES, PAIRS = 2000, 64


@dataclass(frozen=True)
class HeadBehaviour:
    """What one head does, by the names of the numbers of each part."""

    head: str
    kind: str
    looks: dict[str, float]
    costs: dict[str, float]
    carries: dict[str, float]

    @property
    def parts(self) -> dict[str, dict[str, float]]:
        """The parts by their names."""
        return {"looks": self.looks, "costs": self.costs, "carries": self.carries}


@dataclass(frozen=True, kw_only=True)
class Behaviour(Result):
    """What every head of a run does."""

    run: str
    examples: int
    heads: list[HeadBehaviour]


def behaviour_run(run: Run, *, progress: Progress = silent) -> Behaviour:
    """The behaviour of every head of a run; what is found is kept there."""
    steps = 3
    looks = {row.head: row for row in heads_run(run, count=EXAMPLES).heads}
    progress(1, steps)
    subject, training = (
        load_subject(run, split="valid", count=EXAMPLES),
        load_subject(run, split="train", count=TRAINING).examples,
    )
    lost = ablate(subject, training, Ablation(baselines=("mean",))).baselines["mean"]
    progress(2, steps)
    carries = carried(run) if isinstance(run.spec().task, Addition) else {}
    progress(3, steps)
    rows = [
        HeadBehaviour(
            row.head,
            looks[row.head].kind,
            looks=_looks(looks[row.head].metrics),
            costs={name: cell.value for name, cell in (row.lost | row.lost_at).items() if name != LAST},
            carries=carries.get(row.head, {}),
        )
        for row in lost
    ]
    found = Behaviour(run=run.name, examples=len(subject.examples), heads=rows)
    run.keep("behaviour", found)
    return found


def carried(run: Run) -> dict[str, dict[str, float]]:
    """For each head and column the share of a carry's effect that its z restores."""
    task, model = run.spec().task, load_model(run)
    if not isinstance(task, Addition) or not isinstance(model, Seq2Seq):
        raise other_task(run, Addition.kind)
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


def _looks(metrics: Mapping[str, Metric]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in LOOKS:
        cell = metrics.get(name)
        if cell is not None:
            found |= (
                {f"{name} at {place}": value for place, value in cell.by_place.items() if place != LAST}
                if cell.by_place
                else {name: cell.value}
            )
    return found
