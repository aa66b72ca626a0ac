"""The proof: greedy decoding of every ordered pair of operands that the digits can write.

For three digits these are all 1,000,000 sums from 0 + 0 to 999 + 999, whatever range the model was
trained on. Pairs the model has learned from are counted apart, together with their mirror images.
"""

import time
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlab.analysis.decoding import decode
from attnlab.analysis.evaluation import by_chain
from attnlab.analysis.limits import check_size
from attnlab.models import Seq2Seq
from attnlab.problems.addition import Addition
from attnlab.progress import Progress, silent

LISTED = 1000  # wrong sums that are listed with the answer given


def verify(
    task: Addition, model: Seq2Seq, *, seed: int, progress: Progress = silent
) -> tuple[dict[str, Any], Int[Tensor, "W 2"]]:
    """What was counted, with the first wrong sums and answers, and every wrong pair."""
    check_size(task)
    began = time.perf_counter()
    pairs = every_pair(task)
    emitted = decode(task, model, pairs, progress=progress)
    correct = (emitted == task.target(pairs)).all(dim=1)
    learned = seen(task, pairs, seed)
    return {
        "correct": int(correct.sum()),
        "total": len(pairs),
        "seen": _count(correct[learned]),
        "unseen": _count(correct[~learned]),
        "by_chain": by_chain(task, pairs, correct),
        "seconds": time.perf_counter() - began,
        "wrong": [
            {"a": a, "b": b, "answer": task.answer(tokens)}
            for (a, b), tokens in zip(
                pairs[~correct][:LISTED].tolist(), emitted[~correct][:LISTED], strict=True
            )
        ],
    }, pairs[~correct]


def every_pair(task: Addition) -> Int[Tensor, "N 2"]:
    """All ordered pairs of numbers with at most the task's digits."""
    numbers = torch.arange(10**task.digits)
    return torch.cartesian_prod(numbers, numbers)


def seen(task: Addition, pairs: Int[Tensor, "N 2"], seed: int) -> Bool[Tensor, "N"]:
    """Which of ``pairs`` the model has learned from, in this order or mirrored."""
    train, _, _ = task.split_pairs(seed)
    size = 10**task.digits

    def code(pairs: Tensor) -> Tensor:
        low, high = pairs.sort(dim=1).values.unbind(dim=1)
        return low * size + high

    return torch.isin(code(pairs), code(train))


def _count(correct: Bool[Tensor, "N"]) -> dict[str, int]:
    return {"correct": int(correct.sum()), "total": len(correct)}
