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
from statistics import linear_regression
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.exchanges import Budget, Exchanges
from attnlab.model import Model
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.words import SORTED, UNSORTED
from attnlab.progress import Progress, silent

ASKED = Exchanges(lengths=(16, 32, 64, 128, 256, 512, 1024), lists=100)

_TOKENS = Budget(cost=lambda length: length, most=2**15)


def measure_margins(
    task: Sorting, model: Model, asked: Exchanges = ASKED, *, progress: Progress = silent
) -> dict[str, Any]:
    """The margin at each length, and its exponent."""
    rows = []
    for length, parts in asked.measure(task, lambda part: exchange_margins(model, part), _TOKENS, progress):
        moved = torch.cat(parts).double()
        error = moved.std().item() / math.sqrt(len(moved))
        rows.append({"length": length, "margin": moved.mean().item(), "error": error})
    return {"lists": asked.lists, "seed": asked.seed, "rows": rows, "exponent": exponent(rows)}


@torch.inference_mode()
def exchange_margins(model: Model, exchanged: Int[Tensor, "N L"]) -> Float[Tensor, "N"]:
    """|s(x) - s(x')| of each list x'; its sorted list x holds the same numbers."""
    return (evidence(model, exchanged.sort(dim=1).values) - evidence(model, exchanged)).abs()


def evidence(model: Model, lists: Int[Tensor, "N L"]) -> Float[Tensor, "N"]:
    """s: what speaks for "sorted"."""
    logits: Tensor = model(lists)
    return logits[:, SORTED] - logits[:, UNSORTED]


def exponent(rows: Sequence[dict[str, Any]]) -> float | None:
    """The slope of log margin over log length; None if a margin is zero."""
    if any(row["margin"] == 0 for row in rows):
        return None
    lengths, margins = ([math.log(row[key]) for row in rows] for key in ("length", "margin"))
    return linear_regression(lengths, margins).slope
