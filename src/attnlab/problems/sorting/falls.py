"""Whether a head finds the one place of a list that is out of order, by the length of the list.

In a list of n numbers with one pair of different neighbours exchanged, x_i > x_(i+1) at one place i, its
**fall**. The weight that a head puts on it is the mean over lists and all queries of pattern[query, i]: 1/n
if the head looks everywhere alike, at most (2 w + 1)/n with a window of w, and near 1 if every token finds
the fall, wherever it is.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.model import Model
from attnlab.models import attentions
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.exchanges import Budget, Exchanges
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import Run, load_model
from attnlab.spec.codec import later
from attnlab.taps import record

ASKED = Exchanges(lengths=(16, 64, 256, 1024), lists=40)

_PAIRS = Budget(cost=lambda length: length**2, most=2**21)  # of a query and a key


@dataclass(frozen=True)
class Fall:
    """Weights on the fall at one length: of every head, and of the head that has most."""

    length: int
    head: str
    weight: float
    heads: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Falls(Result):
    """Weights on the fall by length."""

    run: str = later("")
    lists: int
    seed: int
    rows: list[Fall]


def measure_falls(
    task: Sorting, model: Model, asked: Exchanges = ASKED, *, run: str = "", progress: Progress = silent
) -> Falls:
    """At each length the weight of every head on the fall, and the head that has most."""
    rows = []
    for length, parts in asked.measure(task, lambda part: fall_weights(model, part), _PAIRS, progress):
        weights = {head: torch.cat([part[head] for part in parts]).mean().item() for head in parts[0]}
        head = max(weights, key=lambda name: weights[name])
        rows.append(Fall(length, head, weights[head], weights))
    return Falls(run=run, lists=asked.lists, seed=asked.seed, rows=rows)


def falls_run(run: Run, task: Sorting, *, progress: Progress = silent) -> Falls:
    """Measure the model of ``run`` and keep the result."""
    found = measure_falls(task, load_model(run), run=run.name, progress=progress)
    run.keep("falls", found)
    return found


@torch.inference_mode()
def fall_weights(model: Model, lists: Int[Tensor, "N L"]) -> dict[str, Float[Tensor, "N"]]:
    """For every head the weight on the fall of each list, which has one, as a mean over queries."""
    falls = (lists[:, 1:] < lists[:, :-1]).double().argmax(dim=1)
    paths = list(attentions(model))
    with record(model, *(f"{path}.pattern" for path in paths)) as seen:
        model(lists)
    weights: dict[str, Tensor] = {}
    for path in paths:
        received = seen[f"{path}.pattern"].double().mean(dim=2)  # (N, H, S), over queries
        front = received.shape[2] - lists.shape[1]  # a token that stands in front of the numbers
        at_fall = received.take_along_dim((falls + front)[:, None, None], dim=2)[:, :, 0]
        weights |= {f"{path}.{head}": at_fall[:, head] for head in range(at_fall.shape[1])}
    return weights
