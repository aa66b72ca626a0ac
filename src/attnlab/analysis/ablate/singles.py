"""What each head alone is worth: what is lost without it, overall and by group.

    lost       exact match of the whole model - exact match without the head
    loss_rise  mean loss without the head - mean loss of the whole model

Groups are the strata of the task (the same difference among their examples) and the places of an answer
(the difference in how often this place is right, given the right tokens before it). Every interval is that
of a paired bootstrap over examples.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlab.analysis.heads.resampling import mean_intervals
from attnlab.analysis.subjects import Answers, Subject
from attnlab.errors import LabError
from attnlab.results import Estimate, Interval

ALL = "all examples"


@dataclass(frozen=True)
class Single:
    """The model without one head: ``lost`` by group of examples, ``lost_at`` by place of the answer."""

    head: str
    exact_match: float
    loss: float
    loss_rise: Estimate
    lost: dict[str, Estimate]
    lost_at: dict[str, Estimate]

    @property
    def groups(self) -> dict[str, Estimate]:
        """What is lost by group of examples and by place."""
        return {**self.lost, **{f"at {place}": cell for place, cell in self.lost_at.items()}}


@dataclass(frozen=True)
class HardestHit:
    """The head that a group misses most; None where nothing is surely lost."""

    group: str
    head: str | None
    value: float
    interval: Interval | None

    @property
    def lost(self) -> Estimate:
        return Estimate(self.value, self.interval)


def describe_singles(subject: Subject, whole: Answers, without: dict[str, Answers]) -> list[Single]:
    """A row for each head in ``without``, which is what the model answers without it.

    Where an answer has one place only, to be right there is to be right.
    """
    if len(subject.places) != whole.right.shape[1]:
        raise LabError(
            f"an example has {whole.right.shape[1]} targets, but there are names for {len(subject.places)}"
        )
    places = subject.places if len(subject.places) > 1 else []
    groups = {ALL: torch.ones(len(subject.examples), dtype=torch.bool), **subject.strata}
    heads = list(without)
    values, among = [], []
    for head in heads:
        values += [without[head].loss - whole.loss]
        values += [_lost(whole.exact, without[head].exact)] * len(groups)
        values += _lost(whole.right, without[head].right).unbind(dim=1)[: len(places)]
        among += [groups[ALL], *groups.values(), *[groups[ALL]] * len(places)]
    cells = iter(estimates(torch.stack(values, dim=1), torch.stack(among, dim=1)))
    return [
        Single(
            head=head,
            exact_match=without[head].exact.double().mean().item(),
            loss=without[head].loss.double().mean().item(),
            loss_rise=next(cells),
            lost={group: next(cells) for group in groups},
            lost_at={place: next(cells) for place in places},
        )
        for head in heads
    ]


def hardest_hit(rows: list[Single]) -> list[HardestHit]:
    """For each group and each place the head without which most is lost, where anything surely is."""
    found = []
    for group in rows[0].groups:
        row = max(rows, key=lambda row: row.groups[group].value)
        cell = row.groups[group]
        head = row.head if cell.surely_above(0.0) else None
        found.append(HardestHit(group, head, cell.value, cell.interval))
    return found


def ranked(rows: Iterable[Single]) -> list[str]:
    """Heads by what is lost without them, then by the loss; those that are missed most first."""
    return [row.head for row in sorted(rows, key=lambda row: (-row.lost[ALL].value, -row.loss))]


def estimates(values: Float[Tensor, "N M"], among: Bool[Tensor, "N M"]) -> list[Estimate]:
    """The mean of each column over the examples ``among`` with its interval, if two have one."""
    rows = among.double()
    sums = values.double() * rows
    means, ends = sums.sum(dim=0) / rows.sum(dim=0), mean_intervals(sums, rows)
    return [
        Estimate(value, None if low != low else (low, high))  # nan is no interval
        for value, (low, high) in zip(means.tolist(), ends.tolist(), strict=True)
    ]


def _lost(before: Tensor, after: Tensor) -> Tensor:
    return before.double() - after.double()
