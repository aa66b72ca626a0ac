"""What each head alone is worth: what is lost without it, overall and by group.

    lost       exact match of the whole model - exact match without the head
    loss_rise  mean loss without the head - mean loss of the whole model

Groups are the strata of the task (the same difference among their examples) and the places of an answer
(the difference in how often this place is right, given the right tokens before it). Every interval is that
of a paired bootstrap over examples.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlab.analysis.heads.resampling import mean_intervals
from attnlab.analysis.subjects import Answers, Subject
from attnlab.errors import LabError

ALL = "all examples"


def describe_singles(subject: Subject, whole: Answers, without: dict[str, Answers]) -> list[dict[str, Any]]:
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
        {
            "head": head,
            "exact_match": without[head].exact.double().mean().item(),
            "loss": without[head].loss.double().mean().item(),
            "loss_rise": next(cells),
            "lost": {group: next(cells) for group in groups},
            "lost_at": {place: next(cells) for place in places},
        }
        for head in heads
    ]


def hardest_hit(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each group and each place the head without which most is lost, where anything surely is."""
    cells = [(row["head"], by_group(row)) for row in rows]
    found = []
    for group in cells[0][1]:
        head, cell = max(
            ((head, of[group]) for head, of in cells), key=lambda pair: float(pair[1]["value"])
        )
        found.append({"group": group, "head": head if surely_above(cell, 0.0) else None, **cell})
    return found


def ranked(rows: list[dict[str, Any]]) -> list[str]:
    """Heads by what is lost without them, then by the loss; those that are missed most first."""
    return [row["head"] for row in sorted(rows, key=lambda row: (-row["lost"][ALL]["value"], -row["loss"]))]


def by_group(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What is lost without one head, by group of examples and by place."""
    return {**row["lost"], **{f"at {place}": cell for place, cell in row["lost_at"].items()}}


def surely_above(cell: dict[str, Any], limit: float) -> bool:
    """Whether the whole interval lies above ``limit``."""
    return cell["interval"] is not None and bool(cell["interval"][0] > limit)


def surely_below(cell: dict[str, Any], limit: float) -> bool:
    """Whether the whole interval lies below ``limit``."""
    return cell["interval"] is not None and bool(cell["interval"][1] < limit)


def estimates(values: Float[Tensor, "N M"], among: Bool[Tensor, "N M"]) -> list[dict[str, Any]]:
    """The mean of each column over the examples ``among`` with its interval, if two have one."""
    rows = among.double()
    sums = values.double() * rows
    means, ends = sums.sum(dim=0) / rows.sum(dim=0), mean_intervals(sums, rows)
    return [
        {"value": value, "interval": None if low != low else [low, high]}  # nan is no interval
        for value, (low, high) in zip(means.tolist(), ends.tolist(), strict=True)
    ]


def _lost(before: Tensor, after: Tensor) -> Tensor:
    return before.double() - after.double()
