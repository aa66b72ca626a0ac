"""How far one exchange of neighbours moves an answer, by the length of the list.

The evidence of a list x is s(x) = logit of "sorted" minus logit of "unsorted". With x a sorted list of n
numbers and x' the same with one pair of different neighbours exchanged, the margin is

    m(n) = mean over lists of |s(x) - s(x')|

What pooling keeps of one token decides how m falls with n. A mean over n tokens moves by 1/n of what its
tokens move, so where an exchange changes few tokens, m(n) ~ n^-1; a minimum over tokens does not thin out,
m(n) ~ n^0. The exponent is the slope of log m over log n by least squares.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.model import Model
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.exchanges import Budget, Exchanges
from attnlab.problems.sorting.words import SORTED, UNSORTED
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import Run, load_model
from attnlab.spec.codec import later

ASKED = Exchanges(lengths=(16, 32, 64, 128, 256, 512, 1024), lists=100)

_TOKENS = Budget(cost=lambda length: length, most=2**15)


@dataclass(frozen=True)
class Margin:
    """The mean margin at one length, and its standard error."""

    length: int
    margin: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Margins(Result):
    """Margins by length, and their exponent."""

    run: str = later("")
    lists: int
    seed: int
    rows: list[Margin]
    exponent: float | None


def measure_margins(
    task: Sorting, model: Model, asked: Exchanges = ASKED, *, run: str = "", progress: Progress = silent
) -> Margins:
    """The margin at each length, and its exponent."""
    rows = []
    for length, parts in asked.measure(task, lambda part: exchange_margins(model, part), _TOKENS, progress):
        moved = torch.cat(parts).double()
        error = moved.std().item() / math.sqrt(len(moved))
        rows.append(Margin(length, moved.mean().item(), error))
    return Margins(run=run, lists=asked.lists, seed=asked.seed, rows=rows, exponent=exponent(rows))


def margins_run(run: Run, task: Sorting, *, progress: Progress = silent) -> Margins:
    """Measure the model of ``run`` and keep the result."""
    found = measure_margins(task, load_model(run), run=run.name, progress=progress)
    run.keep("margins", found)
    return found


@torch.inference_mode()
def exchange_margins(model: Model, exchanged: Int[Tensor, "N L"]) -> Float[Tensor, "N"]:
    """|s(x) - s(x')| of each list x'; its sorted list x holds the same numbers."""
    return (evidence(model, exchanged.sort(dim=1).values) - evidence(model, exchanged)).abs()


def evidence(model: Model, lists: Int[Tensor, "N L"]) -> Float[Tensor, "N"]:
    """s: what speaks for "sorted"."""
    logits: Tensor = model(lists)
    return logits[:, SORTED] - logits[:, UNSORTED]


def exponent(rows: Sequence[Margin]) -> float | None:
    """The slope of log margin over log length; None if a margin is zero."""
    if any(row.margin == 0 for row in rows):
        return None
    lengths, margins = ([math.log(row.length) for row in rows], [math.log(row.margin) for row in rows])
    return linear_regression(lengths, margins).slope
