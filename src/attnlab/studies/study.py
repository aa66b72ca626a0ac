"""A study: variants of an experiment, each with the same seeds, and the measures that compare them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, final

from attnlab.errors import SpecError
from attnlab.runs import Run
from attnlab.spec import Spec

Unit = Literal["share", "count", "steps", "ratio", "number"]
Better = Literal["higher", "lower"]


@final
@dataclass(frozen=True, kw_only=True)
class Measure:
    """A number that every run gives, and the analysis that it is read from (None: from the training)."""

    name: str
    title: str
    unit: Unit
    better: Better
    read: Callable[[Run], float | None]
    """The value of a finished run; None if it never got there."""
    analysis: str | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Curve:
    """Numbers that every run gives over something, such as accuracy over length."""

    name: str
    title: str
    over: str
    """What they are given over."""
    unit: Unit
    read: Callable[[Run], Mapping[int, float]]
    """The numbers of a finished run."""
    analysis: str


@final
@dataclass(frozen=True, kw_only=True)
class Study:
    """Specs x seeds, and what is reported of them.

    Variants share seeds: seed 3 gives every variant of a task the same examples in the same order, so that
    differences are paired. Each run has one torch thread, so that results do not depend on the machine's
    cores; the thread is part of the spec.
    """

    name: str
    question: str
    variants: Mapping[str, Spec]
    measures: tuple[Measure, ...]
    seeds: int = 5
    first_seed: int = 0
    baseline: str | None = None
    """The variant that all others are compared with."""
    matches_heads: bool = False
    """Whether heads of different seeds are matched by what they do, and their roles counted."""
    curves: tuple[Curve, ...] = ()
    factors: tuple[str, str] | None = None
    """What two things the variants cross, each named ``row, column``: the variance is parted among them."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", self.name):
            raise SpecError(f"study name {self.name!r} must be small letters, digits and hyphens")
        if not self.variants or not self.measures:
            raise SpecError(f"study {self.name} must have at least one variant and one measure")
        if self.baseline is not None and self.baseline not in self.variants:
            raise SpecError(f"study {self.name} has no variant {self.baseline!r} to compare with")
        if self.factors is not None:
            rows, columns = self.crossed()
            if set(self.variants) != {crossing(row, column) for row in rows for column in columns}:
                raise SpecError(
                    f"study {self.name} crosses {' x '.join(self.factors)}, but lacks a variant"
                )
        if self.seeds < 1:
            raise SpecError(f"study {self.name} has {self.seeds} seeds, but it must have at least 1")

    @property
    def seed_list(self) -> list[int]:
        return list(range(self.first_seed, self.first_seed + self.seeds))

    @property
    def analyses(self) -> tuple[str, ...]:
        """Every analysis that a measure or curve is read from, once, and what heads are matched by."""
        sources: tuple[Measure | Curve, ...] = (*self.measures, *self.curves)
        read = dict.fromkeys(each.analysis for each in sources if each.analysis is not None)
        return (*read, "behaviour") if self.matches_heads else tuple(read)

    def crossed(self) -> tuple[list[str], list[str]]:
        """The values of both factors, in the order of the variants."""
        halves = [name.partition(", ")[::2] for name in self.variants]
        return list(dict.fromkeys(row for row, _ in halves)), list(dict.fromkeys(col for _, col in halves))

    def spec(self, variant: str, seed: int) -> Spec:
        """The spec of one run."""
        base = self.variants[variant]
        return replace(base, seed=seed, training=replace(base.training, threads=1))

    def specs(self) -> list[tuple[str, int, Spec]]:
        """Every run as (variant, seed, spec), seed by seed, so that all variants grow together."""
        return [(name, seed, self.spec(name, seed)) for seed in self.seed_list for name in self.variants]


def crossing(row: str, column: str) -> str:
    """The name of the variant where two factors cross."""
    return f"{row}, {column}"
