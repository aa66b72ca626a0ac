"""Whether a head finds the one place of a list that is out of order, by the length of the list.

In a list of n numbers with one pair of different neighbours exchanged, x_i > x_(i+1) at one place i, its
**fall**. The weight that a head puts on it is the mean over lists and all queries of pattern[query, i]: 1/n
if the head looks everywhere alike, at most (2 w + 1)/n with a window of w, and near 1 if every token finds
the fall, wherever it is.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlab.analysis.decoding import Progress, silent
from attnlab.models import attentions
from attnlab.runs import Run, load_sorting
from attnlab.taps import record
from attnlab.tasks import Sorting
from attnlab.tasks.sorting import UNSORTED

LENGTHS = (16, 64, 256, 1024)
LISTS = 40

_PAIRS = 2**21  # of a query and a key in one batch


def falls_run(run: Run, *, progress: Progress = silent) -> dict[str, Any]:
    """Measure a run and keep what was found."""
    task, model = load_sorting(run)
    found = {"run": run.name, **measure_falls(task, model, progress=progress)}
    run.keep_analysis("falls", found)
    return found


def measure_falls(
    task: Sorting,
    model: nn.Module,
    *,
    lengths: Sequence[int] = LENGTHS,
    lists: int = LISTS,
    seed: int = 0,
    progress: Progress = silent,
) -> dict[str, Any]:
    """At each length the weight of every head on the fall, and the head that has most."""
    rows = []
    for place, length in enumerate(lengths):
        parts = [
            fall_weights(model, part.inputs[0][part.targets == UNSORTED])
            for part in task.draws(2 * lists, length, "swap", seed=seed, most=_most(length))
        ]
        weights = {head: torch.cat([part[head] for part in parts]).mean().item() for head in parts[0]}
        head = max(weights, key=lambda name: weights[name])
        rows.append({"length": length, "head": head, "weight": weights[head], "heads": weights})
        progress(sum(n * n for n in lengths[: place + 1]), sum(n * n for n in lengths))
    return {"lists": lists, "seed": seed, "rows": rows}


@torch.inference_mode()
def fall_weights(model: nn.Module, lists: Int[Tensor, "N L"]) -> dict[str, Float[Tensor, "N"]]:
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


def _most(length: int) -> int:
    return max(2, _PAIRS // length**2 // 2 * 2)
