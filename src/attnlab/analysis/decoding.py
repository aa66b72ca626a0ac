"""Greedy answers to many sums, a batch at a time."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.models import Seq2Seq
from attnlab.tasks import Addition

BATCH = 500  # activations of this many sums still fit into the processor's cache

Progress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """Progress that nobody watches."""


def batches(rows: Int[Tensor, "N C"]) -> Iterator[Int[Tensor, "B C"]]:
    """``rows`` in parts of at most ``BATCH``."""
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def decode(
    task: Addition, model: Seq2Seq, pairs: Int[Tensor, "N 2"], *, progress: Progress = silent
) -> Int[Tensor, "N T"]:
    """What ``model`` emits for each pair; ``progress`` is told how many of how many are done."""

    @torch.inference_mode()
    def answer(part: Tensor) -> Tensor:
        return model.greedy(task.source(part), start=task.start, length=task.target_length)

    emitted = torch.empty(len(pairs), task.target_length, dtype=torch.long)
    done = 0
    with workers() as pool:
        for answers in pool.map(answer, batches(pairs)):
            emitted[done : done + len(answers)] = answers
            done += len(answers)
            progress(done, len(pairs))
    return emitted


@contextmanager
def workers() -> Iterator[ThreadPoolExecutor]:
    """As many workers as torch has threads, each with one.

    Batches in parallel waste less time in waiting for each other than the halves of each small product.
    """
    with one_thread() as threads:
        pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def one_thread() -> Iterator[int]:
    """Let torch use one thread, and say how many it had: halves of small products wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def fed(task: Addition, emitted: Int[Tensor, "N T"]) -> Int[Tensor, "N T"]:
    """What the decoder was fed while it emitted these tokens: the start token, then all but the last."""
    return torch.cat((torch.full_like(emitted[:, :1], task.start), emitted[:, :-1]), dim=1)
