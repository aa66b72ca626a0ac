"""Evaluation of sums: by the longest carry chain, and by column."""

from dataclasses import dataclass

from jaxtyping import Bool, Int
from torch import Tensor

from attnlab.analysis.evaluate import Evaluation, proportion
from attnlab.examples import Examples
from attnlab.problems.addition.task import Addition
from attnlab.results import Interval


@dataclass(frozen=True)
class Chain:
    """Sums whose longest carry chain has this length."""

    chain: int
    examples: int
    exact_match: float
    exact_match_interval: Interval


@dataclass(frozen=True)
class Column:
    """How often one column of the sum is right."""

    column: str
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class AdditionEvaluation(Evaluation):
    """With shares by carry chain, and columns in the order in which they are emitted."""

    by_chain: list[Chain]
    by_column: list[Column]

    @classmethod
    def measured(
        cls, whole: Evaluation, task: Addition, examples: Examples, said: Int[Tensor, "N T"]
    ) -> "AdditionEvaluation":
        exact = (said == examples.targets).all(dim=1)
        return cls(
            **vars(whole),
            by_chain=by_chain(task, task.pairs(examples.inputs[0]), exact),
            by_column=[Column(row.place, row.accuracy) for row in whole.by_place],
        )


def by_chain(task: Addition, pairs: Int[Tensor, "N 2"], exact: Bool[Tensor, "N"]) -> list[Chain]:
    """Exact match for each length of the longest carry chain."""
    chains = task.chains(pairs)
    return [
        Chain(chain, *proportion(exact[chains == chain]))
        for chain in range(task.digits + 1)
        if (chains == chain).any()
    ]
