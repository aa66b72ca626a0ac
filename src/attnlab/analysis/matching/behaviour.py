"""What each head of a run does, as numbers that can be compared with those of another run's heads.

    looks     weight on sets of keys, and entropy; of a decoder at each place of the answer
    costs     exact match lost when the head is taken out towards its mean: overall, by stratum, by place
    carries   share of the logit difference that its z restores, by contrast, where the task has such

All go from about 0 to 1. The name of a head is no part of it: which index or layer a head has is chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from attnlab.analysis.ablate import Ablation, ablate
from attnlab.analysis.ablate.ablation import TRAINING
from attnlab.analysis.heads import heads_run
from attnlab.analysis.heads.summary import Metric
from attnlab.analysis.subjects import load_subject
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import Run

PARTS = ("looks", "costs", "carries")
LOOKS = ("entropy", "diagonal", "previous", "column", "partner", "carry_in", "no_carry_in", "operator")
LAST = "end"  # what a head does where only the end token is left to say is not its work
EXAMPLES = 2000


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
    carries = run.spec().task.carried(run)
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
