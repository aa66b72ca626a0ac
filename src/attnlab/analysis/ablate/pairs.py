"""Two heads at once: is more lost without both than without the one plus without the other?

    excess(a, b) = lost(a, b) - lost(a) - lost(b)

Above 0 each can stand in for the other, so neither is missed alone; below 0 they do parts of one job, which
fails once whichever of the two is gone. Heads without anything in common have an excess of 0.
"""

from dataclasses import dataclass
from itertools import combinations

import torch

from attnlab.analysis.ablate.singles import ALL, Single, estimates
from attnlab.analysis.ablate.without import Heads
from attnlab.analysis.subjects import Answers
from attnlab.results import Estimate

MATTERS = 0.01
"""A head, or two, matter when at least this share of examples is lost without them."""


@dataclass(frozen=True)
class Pair:
    """The model without two heads."""

    heads: list[str]
    lost: Estimate
    excess: Estimate


def pairs_of(heads: list[str]) -> list[Heads]:
    """Every two heads."""
    return [frozenset(pair) for pair in combinations(heads, 2)]


def describe_pairs(heads: list[str], answers: dict[Heads, Answers]) -> list[Pair]:
    """A row for each two heads, from what is answered without them, without each, and with all."""
    if len(heads) < 2:
        return []
    lost = {
        removed: answers[frozenset()].exact.double() - each.exact.double()
        for removed, each in answers.items()
    }
    values = []
    for a, b in combinations(heads, 2):
        both = lost[frozenset((a, b))]
        values += [both, both - lost[frozenset((a,))] - lost[frozenset((b,))]]
    columns = torch.stack(values, dim=1)
    cells = iter(estimates(columns, torch.ones_like(columns, dtype=torch.bool)))
    return [Pair([a, b], lost=next(cells), excess=next(cells)) for a, b in combinations(heads, 2)]


def only_together(singles: list[Single], pairs: list[Pair]) -> list[Pair]:
    """Pairs of heads neither of which surely matters alone, but which surely matter both at once."""
    idle = idle_heads(singles)
    found = [row for row in pairs if idle.issuperset(row.heads) and row.lost.surely_above(MATTERS)]
    return sorted(found, key=lambda row: -row.lost.value)


def idle_heads(singles: list[Single]) -> set[str]:
    """Heads that surely do not matter alone."""
    return {row.head for row in singles if row.lost[ALL].surely_below(MATTERS)}
