"""How many threads train a model fastest: a short measurement, made once and remembered.

Tiny models are bound by overhead, and one thread often beats two. Another number of threads may round
differently, so the choice is kept for each machine and model shape: the same spec then gives the same
bytes. ``training.threads`` overrides it.
"""

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

from attnlab.errors import StorageError
from attnlab.runs import describe_environment
from attnlab.spec import Spec, to_json
from attnlab.storage import user_cache, write_json
from attnlab.training.trainer import Trainer

_STEPS = 5


def choose_threads(spec: Spec) -> int:
    """The spec's thread count, or the fastest by measurement."""
    if spec.training.threads:
        return spec.training.threads
    cache, key = _cache_file(), _key(spec)
    known = _read(cache)
    if key not in known:
        known = {**known, key: _fastest(spec)}
        with suppress(OSError, StorageError):  # remembering is a help, not a need
            cache.parent.mkdir(parents=True, exist_ok=True)
            write_json(cache, known)
    return known[key]


def _fastest(spec: Spec) -> int:
    """Thread count with the lowest median time of a training step, counts taken in turn."""
    batch = spec.training.batch
    enough = min(spec.task.train, batch * (_STEPS + 1))
    probe = replace(spec, task=replace(spec.task, train=enough, valid=1, test=1))
    options = sorted({1, *(2**n for n in range(1, 7) if 2**n <= _cores()), _cores()})
    seconds: dict[int, list[float]] = {count: [] for count in options}
    before = torch.get_num_threads()
    with torch.random.fork_rng():
        trainer = Trainer(probe)
        examples = trainer.data.train[slice(0, batch)]
        for _ in range(_STEPS):
            for count in options:
                torch.set_num_threads(count)
                began = time.perf_counter()
                trainer.update(examples)
                seconds[count].append(time.perf_counter() - began)
    torch.set_num_threads(before)
    return min(options, key=lambda count: median(seconds[count]))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _key(spec: Spec) -> str:
    environment = describe_environment()
    shape = {
        "model": to_json(spec.model),
        "optimiser": to_json(spec.training.optimiser),
        "batch": spec.training.batch,
        "task": to_json(replace(spec.task, train=1, valid=1, test=1)),
        "machine": [environment["processor"], _cores(), environment["torch"]],
    }
    if spec.training.precision != "float32":
        shape["precision"] = spec.training.precision
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]


def _cache_file() -> Path:
    return user_cache() / "threads.json"


def _read(path: Path) -> dict[str, int]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {key: count for key, count in known.items() if isinstance(count, int) and count > 0}
