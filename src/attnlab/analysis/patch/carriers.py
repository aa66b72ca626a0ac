"""The smallest set of heads whose z, put in together, brings the donor's answer.

Heads are added one by one, each time the one with which the share restored is highest, until it reaches the
goal for every group of pairs; then each is dropped that is not needed. Greedy choice need not find the
smallest set, so all sets that are smaller, and those that are as small, are tried too as long as there are
no more than ``TRIED`` of a size: on a few pairs first, and on all where that comes near the goal. What was
tried is part of the result: a set may be the smallest there is, or only the smallest that was found.

The z that is put in is the donor's, with all that heads before it have brought to it. A set is therefore a
cut through which what differs has to pass, and there may be several: one nearer to the input, one nearer to
the answer. Restoring (Heimersheim and Nanda, 2024: denoising) shows that a set is enough; taking the same
values out of the donor's run (noising) shows how far the run needs it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import final

from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.ablate.baselines import head_names
from attnlab.analysis.patch.runs import Copies, Patching, head_site
from attnlab.progress import Progress, silent

GOAL = 0.9
TRIED = 2500  # sets of one size
FEW = 16  # pairs of each group on which a set is tried first
MARGIN = 0.1  # below the goal, on those few, a set is given up

Heads = tuple[str, ...]


@final
@dataclass(frozen=True)
class Carriers:
    """``heads`` is None if all heads together stay below the goal.

    ``shares`` are those of the set, one a group; ``without`` says what is left of the lowest when one head
    is dropped. ``exhausted`` is the largest size of which every set was tried; ``others`` are further sets
    that are as small and reach the goal, the best first.
    """

    heads: Heads | None
    shares: list[float]
    of_all_heads: list[float]
    without: dict[str, float]
    exhausted: int = 0
    others: tuple[Heads, ...] = ()

    @property
    def smallest(self) -> bool:
        """Whether it is known that there is no smaller set."""
        return self.heads is not None and self.exhausted >= len(self.heads) - 1


def find_carriers(
    groups: Sequence[Patching], *, goal: float = GOAL, progress: Progress = silent
) -> Carriers:
    """The smallest set that restores at least ``goal`` of every group's difference."""
    tally = [0, 0]
    trial = _Trial(groups, progress, tally)
    every = tuple(head_names(groups[0].model))
    ((_, whole),) = trial.each([every])
    if min(whole) < goal:
        return Carriers(None, whole, whole, {})
    chosen = _drop_needless(trial, _greedy(trial, every, goal), goal)
    few = _Trial([group[:FEW] for group in groups], progress, tally)
    chosen, exhausted, others = _exhaust(few, trial, every, chosen, goal)
    ((_, shares),) = trial.each([chosen])
    return Carriers(chosen, shares, whole, _without_each(trial, chosen), exhausted, others)


def _exhaust(
    few: "_Trial", trial: "_Trial", every: Heads, chosen: Heads, goal: float
) -> tuple[Heads, int, tuple[Heads, ...]]:
    """A smaller set or a better one of the same size, the size up to which all were tried, and equals."""
    for size in range(1, len(chosen) + 1):
        if comb(len(every), size) > TRIED:
            return chosen, size - 1, ()
        tried = few.each(combinations(every, size))
        near = [heads for heads, shares in tried if min(shares) >= goal - MARGIN]
        reaching = [(heads, min(shares)) for heads, shares in trial.each(near) if min(shares) >= goal]
        if reaching:
            reaching.sort(key=lambda each: round(each[1], 3))  # of equals the last is nearer to the answer
            *others, (best, _) = reaching
            return best, size, tuple(heads for heads, _ in reversed(others))
    return chosen, len(chosen), ()


def _without_each(trial: "_Trial", chosen: Heads) -> dict[str, float]:
    if len(chosen) == 1:
        return {chosen[0]: 0.0}
    tried = trial.each(tuple(head for head in chosen if head != gone) for gone in chosen)
    return {gone: min(shares) for gone, (_, shares) in zip(chosen, tried, strict=True)}


def _greedy(trial: "_Trial", every: Heads, goal: float) -> Heads:
    chosen: Heads = ()
    reached = 0.0
    while reached < goal:
        options = trial.each([(*chosen, head) for head in every if head not in chosen])
        chosen, shares = max(options, key=lambda each: sum(min(share, goal) for share in each[1]))
        reached = min(shares)
    return tuple(head for head in every if head in chosen)


def _drop_needless(trial: "_Trial", chosen: Heads, goal: float) -> Heads:
    """Drop heads, as long as the goal is still reached without one of them."""
    while len(chosen) > 1:
        options = trial.each([tuple(h for h in chosen if h != head) for head in chosen])
        heads, shares = max(options, key=lambda each: min(each[1]))
        if min(shares) < goal:
            break
        chosen = heads
    return chosen


class _Trial:
    """Tries sets of heads on every group; ``tally``: how many were tried, and are known to be tried."""

    def __init__(self, groups: Sequence[Patching], progress: Progress, tally: list[int]) -> None:
        self._groups = groups
        self._at_once = min(group.copies for group in groups)
        self._copies = [Copies(group, self._at_once) for group in groups]
        self._progress, self._tally = progress, tally

    def each(self, sets: Iterable[Heads]) -> list[tuple[Heads, list[float]]]:
        """Every set with the share that it restores in each group."""
        chosen = list(sets)
        self._tally[1] += len(chosen)
        found: list[tuple[Heads, list[float]]] = []
        for start in range(0, len(chosen), self._at_once):
            part = chosen[start : start + self._at_once]
            patches = [[head_site(head) for head in heads] for heads in part]
            columns = [
                _shares(group, copies.values(patches))
                for group, copies in zip(self._groups, self._copies, strict=True)
            ]
            found += [(heads, list(row)) for heads, *row in zip(part, *columns, strict=True)]
            self._tally[0] += len(part)
            self._progress(*self._tally)
        return found


def _shares(group: Patching, values: Float[Tensor, "M N"]) -> list[float]:
    base, donor = group.base.values.double().mean(), group.donor.values.double().mean()
    return ((values.double().mean(dim=1) - base) / (donor - base)).tolist()
