"""Roles: names for what a head does, by plain thresholds.

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

from collections.abc import Mapping
from statistics import fmean

from attnlab.analysis.matched import RoleCount
from attnlab.analysis.matching.behaviour import Behaviour, HeadBehaviour

HALF, TENTH, HUNDREDTH = 0.5, 0.1, 0.01
OWN_COLUMN, BELOW, PARTNER = "own column", "column below", "other operand"
DIAGONAL, PREVIOUS, OPERATOR = "own token", "token before", "+"
CARRIES, MISSED, NOTHING = "brings the carry", "is missed", "none of these"
ROLES = (OWN_COLUMN, BELOW, PARTNER, DIAGONAL, PREVIOUS, OPERATOR, CARRIES, MISSED)

_LOOKS = {
    OWN_COLUMN: ("column",),
    BELOW: ("carry_in", "no_carry_in"),
    PARTNER: ("partner",),
    DIAGONAL: ("diagonal",),
    PREVIOUS: ("previous",),
    OPERATOR: ("operator",),
}


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
    kinds = dict.fromkeys(row.kind for found in runs.values() for row in found.heads)
    counted = []
    for kind in kinds:
        of = {
            seed: [roles_of(row) or [NOTHING] for row in found.heads if row.kind == kind]
            for seed, found in runs.items()
        }
        for role in (*ROLES, NOTHING):
            counts = [sum(role in roles for roles in mine) for mine in of.values()]
            if any(counts):
                counted.append(RoleCount(kind, role, counts, sum(map(bool, counts))))
    return counted
