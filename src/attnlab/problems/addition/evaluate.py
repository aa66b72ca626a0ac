"""Evaluation of sums by the longest carry chain and by column, and the proof: greedy decoding of all.

The proof decodes every ordered pair of operands that the digits can write: for three digits all 1,000,000
sums from 0 + 0 to 999 + 999, whatever range the model was trained on. Pairs the model has learned from are
counted apart, together with their mirror images.
"""

import time
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlab.analysis.evaluate import Evaluation, proportion
from attnlab.analysis.predict import answer_all
from attnlab.model import Model
from attnlab.problems.addition.operands import Operands
from attnlab.problems.addition.task import WRONG, Addition, verifiable
from attnlab.progress import Progress, silent
from attnlab.results import Interval, Result, Row, plain_fields
from attnlab.runs import RunFolder
from attnlab.sets import Examples
from attnlab.specs.codec import later


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
            by_chain=by_chain(task, task.read_back(examples.inputs[0])[0], exact),
            by_column=[Column(row.place, row.accuracy) for row in whole.by_place],
        )


def by_chain(task: Addition, operands: Operands, exact: Bool[Tensor, "N"]) -> list[Chain]:
    """Exact match for each length of the longest carry chain."""
    chains = task.chains(operands)
    return [Chain(chain, *proportion(exact[chains == chain])) for chain in sorted(set(chains.tolist()))]


LISTED = 1000  # wrong sums that are listed with the answer given


@dataclass(frozen=True)
class Count:
    """How many of how many sums are right."""

    correct: int
    total: int

    @classmethod
    def of(cls, correct: Bool[Tensor, "N"]) -> "Count":
        return cls(int(correct.sum()), len(correct))


@dataclass(frozen=True)
class Wrong:
    """A sum that is answered wrongly."""

    a: int
    b: int
    answer: str


@dataclass(frozen=True, kw_only=True)
class Verification(Result):
    """Every sum, counted; ``wrong`` lists the first of those that are wrong."""

    shown_by: ClassVar[str] = "attnlab.problems.addition.tables"

    run: str = later("")
    correct: int
    total: int
    seen: Count
    unseen: Count
    by_chain: list[Chain]
    seconds: float
    wrong: list[Wrong]

    def records(self) -> list[Row]:
        """A row for each length of the longest carry chain."""
        return [plain_fields(each) for each in self.by_chain]


def verify(
    task: Addition, model: Model, *, seed: int, run: str = "", progress: Progress = silent
) -> tuple[Verification, Int[Tensor, "W 2"]]:
    """What was counted, with the first wrong sums and answers, and every wrong pair."""
    verifiable(task)
    began = time.perf_counter()
    pairs = every_pair(task)
    examples = Examples((pairs,), task.target(pairs), lambda part: (task.source(part),))
    emitted = answer_all(task, model, examples, progress=progress)
    correct = (emitted == examples.targets).all(dim=1)
    learned = task.among(pairs, task.split_pairs(seed)[0])  # in this order or mirrored
    missed = pairs[~correct]
    listed = zip(missed[:LISTED].tolist(), emitted[~correct][:LISTED], strict=True)
    counted = Verification(
        run=run,
        correct=int(correct.sum()),
        total=len(pairs),
        seen=Count.of(correct[learned]),
        unseen=Count.of(correct[~learned]),
        by_chain=by_chain(task, pairs, correct),
        seconds=time.perf_counter() - began,
        wrong=[Wrong(a, b, task.answer(tokens)) for (a, b), tokens in listed],
    )
    return counted, missed


def verify_run(task: Addition, run: RunFolder, *, progress: Progress = silent) -> Verification:
    """Decode every pair of operands; the run keeps what was counted and, beside it, every wrong pair."""
    counted, wrong = verify(task, run.model, seed=run.spec().seed, run=run.name, progress=progress)
    if run.keep_analysis("verify", counted.to_json()):
        lines = "".join(f"{a},{b}\n" for a, b in wrong.tolist())
        run.write({WRONG: f"a,b\n{lines}".encode()})
    return counted


def every_pair(task: Addition) -> Int[Tensor, "N 2"]:
    """All ordered pairs of numbers with at most the task's digits."""
    numbers = torch.arange(10**task.digits)
    return torch.cartesian_prod(numbers, numbers)
