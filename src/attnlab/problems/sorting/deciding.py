"""Which two neighbours of a list decided a model's answer.

A model with lowest pooling says it itself: the token with the lowest score speaks for the list, and of the
two beside it the one that scores lower is the other half of the pair. Any list can be asked so.

Any other model is asked by trying: of every pair of neighbours it is seen how the evidence e for "sorted"
(the difference of the two logits) changes when the two change places:

    effect = e(exchanged) - e

If the list was called unsorted, the pair whose exchange speaks most for "sorted" decided it. That takes a
pass for each pair, so lists may not be longer than ``MOST``.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.model import Model
from attnlab.models import Classifier
from attnlab.pooling import LowestPool
from attnlab.taps import record

MOST = 256
"""The longest list of which every pair is tried."""
BATCH = 64


@dataclass(frozen=True)
class Neighbours:
    """Two neighbours by their places, which count from 1, and how they were found."""

    places: list[int]
    numbers: list[int]
    against: bool
    by: Literal["scores", "exchange"]


@torch.inference_mode()
def deciding_neighbours(model: Model, numbers: Int[Tensor, "L"], *, against: bool) -> Neighbours | None:
    """The pair that decided ``against`` "sorted"; if nothing did, the pair with the lowest score.

    None if there are no scores, and nothing spoke against or the list is too long to try.
    """
    how: Literal["scores", "exchange"]
    if isinstance(model, Classifier) and isinstance(model.pool, LowestPool):
        first, how = _by_scores(model, numbers), "scores"
    elif against and len(numbers) <= MOST:
        first, how = _by_exchange(model, numbers), "exchange"
    else:
        return None
    return Neighbours([first + 1, first + 2], numbers[first : first + 2].tolist(), against, how)


def _by_scores(model: Model, numbers: Int[Tensor, "L"]) -> int:
    """The pair of the lowest-scoring token and the lower-scoring one beside it."""
    with record(model, "pool.token_scores") as seen:
        model(numbers[None])
    scores = seen["pool.token_scores"][0, -len(numbers) :, 0]
    lowest = int(scores.argmin())
    left = scores[lowest - 1].item() if lowest else torch.inf
    right = scores[lowest + 1].item() if lowest + 1 < len(numbers) else torch.inf
    return lowest - 1 if left < right else lowest


def _by_exchange(model: Model, numbers: Int[Tensor, "L"]) -> int:
    """The pair whose exchange brings the most evidence; equal neighbours change nothing."""
    tried = exchanged(numbers)
    evidence = torch.cat([_evidence(model, part) for part in tried.split(BATCH)])  # type: ignore[no-untyped-call]
    return int(evidence.argmax())


def exchanged(numbers: Int[Tensor, "L"]) -> Int[Tensor, "P L"]:
    """The list with each pair of neighbours exchanged in turn."""
    pairs = torch.arange(len(numbers) - 1)
    rows = numbers.repeat(len(pairs), 1)
    rows[pairs, pairs], rows[pairs, pairs + 1] = numbers[1:], numbers[:-1]
    return rows


def _evidence(model: Model, rows: Int[Tensor, "P L"]) -> Float[Tensor, "P"]:
    logits = model(rows)
    return logits[:, 1] - logits[:, 0]
