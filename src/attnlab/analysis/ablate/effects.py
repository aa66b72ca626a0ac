"""What heads are worth: alone, towards several baselines, two at once, and in any company.

Of each head alone, overall and by group:

    lost       exact match of the whole model - exact match without the head
    loss_rise  mean loss without the head - mean loss of the whole model

Groups are the strata of the task (the same difference among their examples) and the places of an answer
(the difference in how often this place is right, given the right tokens before it). Every interval is that
of a paired bootstrap over examples. Baselines disagree about a head when the intervals of what is lost do
not meet.

Two heads at once: is more lost without both than without the one plus without the other?

    excess(a, b) = lost(a, b) - lost(a) - lost(b)

Above 0 each can stand in for the other, so neither is missed alone; below 0 they do parts of one job, which
fails once whichever of the two is gone. Heads without anything in common have an excess of 0.

Shapley values of heads (Shapley, 1953) are what a head adds, averaged over who else is there. With
v(S) the exact match of the model that keeps the heads S, all others at the baseline,

    phi(h) = mean over all orders of the heads of v(those before h, and h) - v(those before h)

It is the one way to share v(all) - v(none) among the heads such that equal heads get equal shares, heads
that never add anything get nothing, and the shares of a sum of games add up. The mean over all orders is
estimated from orders drawn at random (Castro, Gomez and Tejada, 2009); its standard error is the deviation
between these orders over the root of their number. In every order what the heads add sums to
v(all) - v(none), so the estimates do so too.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlab.analysis.ablate.baselines import Heads
from attnlab.analysis.heads import mean_intervals
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
    values, among = [], []
    for each in without.values():
        values += [each.loss - whole.loss]
        values += [_lost(whole.exact, each.exact)] * len(groups)
        values += _lost(whole.right, each.right).unbind(dim=1)[: len(places)]
        among += [groups[ALL], *groups.values(), *[groups[ALL]] * len(places)]
    cells = iter(estimates(values, among))
    return [
        Single(
            head=head,
            exact_match=each.exact_match,
            loss=each.mean_loss,
            loss_rise=next(cells),
            lost={group: next(cells) for group in groups},
            lost_at={place: next(cells) for place in places},
        )
        for head, each in without.items()
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


def estimates(values: list[Float[Tensor, "N"]], among: list[Bool[Tensor, "N"]]) -> list[Estimate]:
    """The mean of each of ``values`` over the examples ``among`` with its interval, if two have one."""
    rows = torch.stack(among, dim=1).double()
    sums = torch.stack(values, dim=1).double() * rows
    means, ends = sums.sum(dim=0) / rows.sum(dim=0), mean_intervals(sums, rows)
    return [
        Estimate(value, None if low != low else (low, high))  # nan is no interval
        for value, (low, high) in zip(means.tolist(), ends.tolist(), strict=True)
    ]


def _lost(before: Tensor, after: Tensor) -> Tensor:
    return before.double() - after.double()


@dataclass(frozen=True)
class Extreme:
    """What is lost towards one baseline."""

    baseline: str
    value: float
    interval: Interval


@dataclass(frozen=True)
class Disagreement:
    """A head, and the two baselines whose intervals lie farthest apart."""

    head: str
    least: Extreme
    most: Extreme


def disagreements(by_baseline: dict[str, list[Single]]) -> list[Disagreement]:
    """Heads whose worth depends on the baseline, the widest difference of each, the widest first."""
    found = []
    for rows in zip(*by_baseline.values(), strict=True):
        ends = [
            Extreme(name, row.lost[ALL].value, interval)
            for name, row in zip(by_baseline, rows, strict=True)
            if (interval := row.lost[ALL].interval) is not None
        ]
        pairs = combinations(sorted(ends, key=lambda end: end.value), 2)
        apart = [(low, high) for low, high in pairs if low.interval[1] < high.interval[0]]
        if apart:
            widest = max(apart, key=lambda pair: pair[1].value - pair[0].value)
            found.append(Disagreement(rows[0].head, *widest))
    return sorted(found, key=lambda row: row.least.value - row.most.value)


def disagreement_sentence(found: list[Disagreement], heads: int) -> str:
    """What ``disagreements`` found, in words."""
    if not found:
        return "The baselines agree on every head within their intervals."
    first = found[0]
    return (
        f"The baselines disagree on {len(found)} of {heads} heads, most on {first.head}: without it "
        f"{_points(first.most)} are lost towards {first.most.baseline}, but "
        f"{_points(first.least)} towards {first.least.baseline}."
    )


def _points(cell: Extreme) -> str:
    low, high = cell.interval
    return f"{100 * cell.value:.1f} points (95%: {100 * low:.1f} to {100 * high:.1f})"


MATTERS = 0.01
"""A head, or two, matter when at least this share of examples is lost without them."""


@dataclass(frozen=True)
class Pair:
    """The model without two heads."""

    heads: list[str]
    lost: Estimate
    excess: Estimate


def describe_pairs(heads: list[str], answers: dict[Heads, Answers]) -> list[Pair]:
    """A row for each two heads, from what is answered without them, without each, and with all."""
    if len(heads) < 2:
        return []
    lost = {removed: _lost(answers[frozenset()].exact, each.exact) for removed, each in answers.items()}
    values: list[Tensor] = []
    for a, b in combinations(heads, 2):
        both = lost[frozenset((a, b))]
        values += [both, both - lost[frozenset((a,))] - lost[frozenset((b,))]]
    cells = iter(estimates(values, [torch.ones(len(values[0]), dtype=torch.bool)] * len(values)))
    return [Pair([a, b], lost=next(cells), excess=next(cells)) for a, b in combinations(heads, 2)]


def only_together(singles: list[Single], pairs: list[Pair]) -> list[Pair]:
    """Pairs of heads neither of which surely matters alone, but which surely matter both at once."""
    idle = idle_heads(singles)
    found = [row for row in pairs if idle.issuperset(row.heads) and row.lost.surely_above(MATTERS)]
    return sorted(found, key=lambda row: -row.lost.value)


def idle_heads(singles: list[Single]) -> set[str]:
    """Heads that surely do not matter alone."""
    return {row.head for row in singles if row.lost[ALL].surely_below(MATTERS)}


@dataclass(frozen=True)
class Worth:
    """A mean over orders and its standard error; None where there is but one order."""

    value: float
    error: float | None


@dataclass(frozen=True)
class HeadWorth:
    """The Shapley value of a head by exact match, and by how much the loss falls."""

    head: str
    value: float
    error: float | None
    loss: Worth


@dataclass(frozen=True)
class Shapley:
    """Exact match of the ``whole`` model and with none of the heads, and how they share the difference."""

    orders: int
    whole: float
    none: float
    heads: list[HeadWorth]

    @property
    def ranked(self) -> list[HeadWorth]:
        """The highest value first."""
        return sorted(self.heads, key=lambda row: -row.value)


def random_orders(heads: list[str], count: int, seed: int) -> list[list[str]]:
    """``count`` orders in which the heads come in, drawn at random."""
    chance = torch.Generator().manual_seed(seed)
    return [[heads[i] for i in torch.randperm(len(heads), generator=chance).tolist()] for _ in range(count)]


def missing_in(order: list[str]) -> list[Heads]:
    """The heads that are still out, before the first has come in and after each."""
    return [frozenset(order[arrived:]) for arrived in range(len(order) + 1)]


def describe_shapley(heads: list[str], orders: list[list[str]], answers: dict[Heads, Answers]) -> Shapley:
    """Shapley values by exact match, and by how much the loss falls."""
    exact = _worths(heads, orders, {out: each.exact_match for out, each in answers.items()})
    loss = _worths(heads, orders, {out: -each.mean_loss for out, each in answers.items()})
    return Shapley(
        orders=len(orders),
        whole=answers[frozenset()].exact_match,
        none=answers[frozenset(heads)].exact_match,
        heads=[
            HeadWorth(head, *value, Worth(*fall))
            for head, value, fall in zip(heads, exact, loss, strict=True)
        ],
    )


def _worths(
    heads: list[str], orders: list[list[str]], worth: dict[Heads, float]
) -> list[tuple[float, float | None]]:
    """Of each head the mean of what it adds in each order, and its standard error."""
    rows = []
    for order in orders:
        values = [worth[out] for out in missing_in(order)]
        added = {head: values[i + 1] - values[i] for i, head in enumerate(order)}
        rows.append([added[head] for head in heads])
    columns, count = torch.tensor(rows, dtype=torch.double).unbind(dim=1), len(rows)
    return [(each.mean().item(), each.std().item() / count**0.5 if count > 1 else None) for each in columns]


def only_in_company(singles: list[Single], found: Shapley) -> list[str]:
    """Heads that surely do not matter alone, with all others there, but have a Shapley value that does."""
    idle = idle_heads(singles)
    return [
        row.head
        for row in found.ranked
        if row.head in idle and row.error is not None and row.value - 2 * row.error > MATTERS
    ]
