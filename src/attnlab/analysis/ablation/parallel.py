"""Work shared out to threads, each with a copy of the model, since taps are part of a model."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from queue import SimpleQueue
from threading import Event, Lock
from typing import TypeVar

import torch
from torch import nn

from attnlab.analysis.decoding import Progress, workers

Item = TypeVar("Item")
Found = TypeVar("Found")
Tick = Callable[[], None]
"""To be called after every step of the work."""


def in_parallel(
    model: nn.Module,
    items: Sequence[Item],
    work: Callable[[nn.Module, Item, Tick], Found],
    *,
    steps: int,
    progress: Progress,
) -> list[Found]:
    """What ``work`` makes of each item, in order; ``progress`` is told how many ``steps`` are done."""
    models: SimpleQueue[nn.Module] = SimpleQueue()
    models.put(model)
    for _ in range(min(torch.get_num_threads(), len(items)) - 1):
        models.put(deepcopy(model))
    done, stopped, lock = 0, Event(), Lock()

    def tick() -> None:
        nonlocal done
        if stopped.is_set():
            raise RuntimeError("another worker was stopped")
        with lock:
            done += 1
            progress(done, steps)

    def work_on(item: Item) -> Found:
        own = models.get()
        try:
            return work(own, item, tick)
        finally:
            models.put(own)

    with workers() as pool:
        try:
            return list(pool.map(work_on, items))
        finally:
            stopped.set()
