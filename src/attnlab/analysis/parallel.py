"""Work shared out to threads, a batch each.

Each thread lets torch use one thread of its own: batches beside each other never wait for each other, while
the halves of each small product do, and wait long once another program takes one of the cores. What is
computed does not depend on how many threads there are.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from queue import SimpleQueue
from threading import Event, Lock
from typing import TypeVar

import torch

from attnlab.devices import device_of, is_cpu
from attnlab.model import Model
from attnlab.training.threads import keep_blocks

Item = TypeVar("Item")
Found = TypeVar("Found")
Tick = Callable[[], None]
"""To be called after every step of the work."""


@contextmanager
def workers() -> Iterator[ThreadPoolExecutor]:
    """As many workers as torch has threads, each with one."""
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


def in_order(
    work: Callable[[Item], Found], items: Iterable[Item], *, device: torch.device | None = None
) -> Iterator[Found]:
    """What ``work`` makes of each item, in order and without gradients; few items are held at a time.

    An accelerator, if ``device`` is one, shares work out itself: it gets one item after the other.
    """

    def do(item: Item) -> Found:
        with torch.inference_mode():  # each thread has a mode of its own
            return work(item)

    if device is not None and not is_cpu(device):
        yield from map(do, items)
        return
    most = torch.get_num_threads() + 1
    with workers() as pool:
        waiting: deque[Future[Found]] = deque()
        for item in items:
            waiting.append(pool.submit(do, item))
            if len(waiting) == most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def in_parallel(
    model: Model,
    items: Sequence[Item],
    work: Callable[[Model, Item, Tick], Found],
    *,
    steps: int,
    progress: Callable[[int, int], None],
) -> list[Found]:
    """What ``work`` makes of each item, in order; ``progress`` is told how many ``steps`` are done.

    Each thread has a copy of the model, since taps are part of a model. On an accelerator there is one.
    """
    alone = not is_cpu(device_of(model))
    models: SimpleQueue[Model] = SimpleQueue()
    models.put(model)
    for _ in range(0 if alone else min(torch.get_num_threads(), len(items)) - 1):
        models.put(deepcopy(model))
    done, stopped, lock = 0, Event(), Lock()
    keep_blocks()  # each pass asks for the same large blocks again

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

    if alone:
        return list(map(work_on, items))
    with workers() as pool:
        try:
            return list(pool.map(work_on, items))
        finally:
            stopped.set()
