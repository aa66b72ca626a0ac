"""What each head of a run does, as numbers that can be compared with those of another run's heads.

    looks     weight on sets of keys, and entropy; of a decoder at each place of the answer
    costs     exact match lost when the head is taken out towards its mean: overall, by stratum, by place
    carries   share of the logit difference that its z restores, by contrast, where the task has such

All go from about 0 to 1. The name of a head is no part of it: which index or layer a head has is chance.

Which head of one run does the work of which head of another.

Heads of one kind of attention are compared by their behaviour, whatever their layer and index. With the
parts p of a behaviour (looks, costs, carries), each of n_p numbers,

    distance(i, j) = sqrt( mean over p of  sum_k (x_ik - x_jk)^2 / n_p ).

Runs are matched to a common centre for each head by the assignment of the lowest sum of squared distances
(Kuhn, 1955: the Hungarian method), the centres become the means of what was matched to them, and so on
until nothing changes. Every run serves once as the first centre; the result with the lowest sum is taken.

A matching always gives pairs, also where there is nothing in common. So its mean distance is held against
that of heads of the same name, and against that of matched heads after all heads were dealt out to the runs
at random: were it no lower, runs would not each grow one head of a sort, but any mixture. p is the share of
deals that come as near (a permutation test). For each group the silhouette (Rousseeuw, 1987) tells whether
it is one: near 1 if its heads are much nearer to each other than to those of the next group, 0 or less if
they might as well belong there.

Roles: names for what a head does, by plain thresholds.

Where a head looks, at least half of its weight on a set of keys (the mean over the places of a decoder):

    own column       the two digits of the column that a row is about
    column below     the columns that decide whether a carry arrives, where one does or where none does
    other operand    the other operand's digit of the own column (encoder)
    own token, token before    in self attention
    +                the operator

and what it does, whatever it looks at:

    brings the carry    by itself its z restores a tenth or more of a carry's effect in some column
    is missed           without it a hundredth or more of all sums are wrong

A head may have several roles or none. The decoder's own digits belong to columns too, but there the column
below is the token itself, so it goes by that name only.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.ablate.ablation import Ablation, ablate_run
from attnlab.analysis.heads import Metric, heads_run
from attnlab.analysis.statistics import Distances, Group, MatchedKind, RoleCount
from attnlab.errors import LabError
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import RunFolder

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


def behaviour_run(
    run: RunFolder,
    *,
    carried: Callable[[RunFolder], Mapping[str, dict[str, float]]] = lambda run: {},
    progress: Progress = silent,
) -> Behaviour:
    """The behaviour of every head of a run; what is found is kept there.

    ``carried`` says what each head brings where two inputs differ in one thing, by the name of that thing:
    the share of the logits' difference that its z restores.
    """
    looks = {row.head: row for row in heads_run(run, count=EXAMPLES).heads}
    progress(1, 3)
    lost = ablate_run(run, Ablation(baselines=("mean",)), count=EXAMPLES, keep=False)
    progress(2, 3)
    carries = carried(run)
    progress(3, 3)
    rows = [
        HeadBehaviour(
            row.head,
            looks[row.head].kind,
            looks=_looks(looks[row.head].metrics),
            costs={name: cell.value for name, cell in (row.lost | row.lost_at).items() if name != LAST},
            carries=carries.get(row.head, {}),
        )
        for row in lost.baselines["mean"]
    ]
    return run.keep("behaviour", Behaviour(run=run.name, examples=lost.examples, heads=rows))


def _looks(metrics: Mapping[str, Metric]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in (name for name in LOOKS if name in metrics):
        by_place = metrics[name].by_place
        if by_place:
            found |= {f"{name} at {place}": value for place, value in by_place.items() if place != LAST}
        else:
            found[name] = metrics[name].value
    return found


HALF, TENTH, HUNDREDTH = 0.5, 0.1, 0.01
OWN_COLUMN, BELOW = "own column", "column below"
CARRIES, MISSED, NOTHING = "brings the carry", "is missed", "none of these"

_LOOKS = {
    OWN_COLUMN: ("column",),
    BELOW: ("carry_in", "no_carry_in"),
    "other operand": ("partner",),
    "own token": ("diagonal",),
    "token before": ("previous",),
    "+": ("operator",),
}
ROLES = (*_LOOKS, CARRIES, MISSED)


def roles_of(row: HeadBehaviour) -> list[str]:
    """The roles of one head, from its behaviour."""
    looks = {
        role
        for role, metrics in _LOOKS.items()
        if max((weight(row.looks, name) for name in metrics), default=0.0) >= HALF
    }
    if row.kind == "decoder self":
        looks -= {OWN_COLUMN, BELOW}
    if max(row.carries.values(), default=0.0) >= TENTH:
        looks.add(CARRIES)
    if next(iter(row.costs.values()), 0.0) >= HUNDREDTH:
        looks.add(MISSED)
    return [role for role in ROLES if role in looks]


def weight(looks: Mapping[str, float], metric: str) -> float:
    """The weight of a metric, of a decoder the mean over its places; 0 where it does not apply."""
    found = [value for name, value in looks.items() if name.split(" at ")[0] == metric]
    return fmean(found) if found else 0.0


def count_roles(runs: Mapping[int, Behaviour]) -> list[RoleCount]:
    """For each kind of attention and role, how many heads of each run have it."""
    counted = []
    for kind, rows in _by_kind(runs).items():
        of = [[roles_of(row) or [NOTHING] for row in mine] for mine in rows]
        for role in (*ROLES, NOTHING):
            counts = [sum(role in roles for roles in mine) for mine in of]
            if any(counts):
                counted.append(RoleCount(kind, role, counts, sum(map(bool, counts))))
    return counted


ROUNDS = 100
DEALS = 99


def match_heads(runs: Mapping[int, Behaviour]) -> list[MatchedKind]:
    """For each kind of attention groups of heads, one of each run; ``runs`` are behaviours by seed.

    A group tells how many of its heads have each role, and the means of all that its heads do.
    """
    if len(runs) < 2:
        raise LabError(f"there is {len(runs)} run to match heads of, but there must be at least 2")
    return [_match_kind(kind, rows) for kind, rows in _by_kind(runs).items()]


def _by_kind(runs: Mapping[int, Behaviour]) -> dict[str, list[list[HeadBehaviour]]]:
    """For each kind of attention the heads of each run."""
    kinds = dict.fromkeys(row.kind for found in runs.values() for row in found.heads)
    return {
        kind: [[row for row in found.heads if row.kind == kind] for found in runs.values()]
        for kind in kinds
    }


def _match_kind(kind: str, rows: list[list[HeadBehaviour]]) -> MatchedKind:
    counts = {len(mine) for mine in rows}
    if len(counts) > 1:
        raise LabError(
            f"runs have {sorted(counts)} heads of kind {kind}; only equal numbers can be matched"
        )
    vectors = _vectors(rows)
    order = assign(vectors)
    matched = _in_groups(vectors, order)
    members = [[mine[head] for mine, head in zip(rows, group, strict=True)] for group in order.T.tolist()]
    groups = [
        Group(
            heads=[row.head for row in mine],
            roles=dict(Counter(role for row in mine for role in roles_of(row))),
            silhouette=apart,
            **{part: _means([row.parts[part] for row in mine]) for part in PARTS},
        )
        for mine, apart in zip(members, silhouette(matched).tolist(), strict=True)
    ]
    distance = Distances(between(matched), between(vectors), *dealt(vectors, between(matched)))
    return MatchedKind(kind, distance, groups)


def assign(vectors: Float[Tensor, "R H F"]) -> Int[Tensor, "R H"]:
    """For each run the head of each group; groups are ordered as the heads of the first run."""
    tried = [_from(vectors, start) for start in range(len(vectors))]
    _, best = min(tried, key=lambda each: each[0])
    return best[:, best[0].argsort()]


def _from(vectors: Float[Tensor, "R H F"], start: int) -> tuple[float, Int[Tensor, "R H"]]:
    """The matching that begins with the heads of one run as centres, and its sum of squares."""
    from scipy.optimize import linear_sum_assignment  # here: it takes half a second to import

    centres = vectors[start]
    order = torch.zeros(vectors.shape[:2], dtype=torch.long)
    for _ in range(ROUNDS):
        costs = torch.cdist(centres.expand(len(vectors), -1, -1), vectors).square()  # (R, centres, heads)
        found = torch.stack([torch.from_numpy(linear_sum_assignment(cost.numpy())[1]) for cost in costs])
        matched = _in_groups(vectors, found)
        centres = matched.mean(dim=0)
        if torch.equal(found, order):
            break
        order = found
    return float((matched - centres).square().sum()), order


def between(matched: Float[Tensor, "R H F"]) -> float:
    """Mean distance of the heads at the same place, over all pairs of runs."""
    first, second = torch.triu_indices(len(matched), len(matched), offset=1)
    return float((matched[first] - matched[second]).square().sum(dim=-1).sqrt().mean())


def silhouette(matched: Float[Tensor, "R H F"]) -> Float[Tensor, "H"]:
    """The mean silhouette of each group; 0 where there is but one group."""
    runs, groups, _ = matched.shape
    if groups == 1:
        return torch.zeros(1)
    apart = torch.cdist(matched.flatten(0, 1), matched.flatten(0, 1)).view(runs, groups, runs, groups)
    means = apart.sum(dim=2)  # (R, H, H): summed over the runs of the other group
    own = means.diagonal(dim1=1, dim2=2) / (runs - 1)  # a head's distance to itself is 0
    others = (means / runs).masked_fill(torch.eye(groups, dtype=torch.bool), torch.inf).amin(dim=2)
    largest = torch.maximum(own, others).clamp(min=1e-12)
    return ((others - own) / largest).mean(dim=0)


def dealt(vectors: Float[Tensor, "R H F"], matched: float) -> tuple[float, float]:
    """The mean distance of matched heads after heads were dealt to runs at random, and p."""
    generator = torch.Generator().manual_seed(0)
    distances = []
    for _ in range(DEALS):
        order = torch.randperm(vectors.shape[0] * vectors.shape[1], generator=generator)
        shuffled = vectors.flatten(0, 1)[order].view_as(vectors)
        distances.append(between(_in_groups(shuffled, assign(shuffled))))
    nearer = sum(distance <= matched for distance in distances)
    return fmean(distances), (1 + nearer) / (1 + DEALS)


def _in_groups(vectors: Float[Tensor, "R H F"], order: Int[Tensor, "R H"]) -> Float[Tensor, "R H F"]:
    return vectors.gather(1, order[..., None].expand_as(vectors))


def _vectors(rows: list[list[HeadBehaviour]]) -> Float[Tensor, "R H F"]:
    """Behaviours, by the numbers that every head has; their Euclidean distance is the distance of heads."""
    every = [row for mine in rows for row in mine]
    tables = [table for part in PARTS if (table := _common([row.parts[part] for row in every]))]
    parts = [
        torch.tensor(list(table.values()), dtype=torch.double).T / (len(table) * len(tables)) ** 0.5
        for table in tables
    ]
    return torch.cat(parts, dim=1).reshape(len(rows), len(rows[0]), -1)


def _common(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    """The numbers that all have, by their names."""
    return {name: [row[name] for row in rows] for name in rows[0] if all(name in row for row in rows)}


def _means(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: fmean(values) for name, values in _common(rows).items()}
