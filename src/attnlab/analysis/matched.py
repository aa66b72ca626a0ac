"""What heads of several seeds have in common, as studies keep it; ``analysis.matching`` finds it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RoleCount:
    """How many heads of each run have a role, and how many runs have such a head."""

    kind: str
    role: str
    heads: list[int]
    runs: int


@dataclass(frozen=True)
class Group:
    """Heads that do the same, one of each run: how many have each role, and means of what they do."""

    heads: list[str]
    roles: dict[str, int]
    silhouette: float
    looks: dict[str, float]
    costs: dict[str, float]
    carries: dict[str, float]


@dataclass(frozen=True)
class Distances:
    """Mean distances of matched heads, of heads of the same name, and of heads dealt out at random."""

    matched: float
    same_name: float
    dealt: float
    p: float


@dataclass(frozen=True)
class MatchedKind:
    kind: str
    distance: Distances
    groups: list[Group]
