"""Greedy answers to many sums, a batch at a time."""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.parallel import in_order
from attnlab.models import Seq2Seq
from attnlab.problems.addition import Addition
from attnlab.progress import Progress, silent

BATCH = 500  # activations of this many sums still fit into the processor's cache


def batches(rows: Int[Tensor, "N C"]) -> Iterator[Int[Tensor, "B C"]]:
    """``rows`` in parts of at most ``BATCH``."""
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def decode(
    task: Addition, model: Seq2Seq, pairs: Int[Tensor, "N 2"], *, progress: Progress = silent
) -> Int[Tensor, "N T"]:
    """What ``model`` emits for each pair; ``progress`` is told how many of how many are done."""

    def answer(part: Tensor) -> Tensor:
        return model.greedy(task.source(part), start=task.start, length=task.target_length)

    emitted = torch.empty(len(pairs), task.target_length, dtype=torch.long)
    done = 0
    for answers in in_order(answer, batches(pairs)):
        emitted[done : done + len(answers)] = answers
        done += len(answers)
        progress(done, len(pairs))
    return emitted
