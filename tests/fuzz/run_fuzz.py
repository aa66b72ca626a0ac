"""``scripts/fuzz MINUTES [READER ...]``: inputs that are nearly right for every reader, in turn.

It counts what goes wrong: tracebacks, hangs (over 5 s of the processor for an input), memory (over 1 GB).
Each input that did is kept in ``tests/fuzz/corpus``, which the tests go through.
"""

import hashlib
import json
import resource
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from targets import Target, faultless, targets

import attnlab  # noqa: F401  # before torch

CORPUS = Path(__file__).parent / "corpus"
SLOW, LARGE = 5.0, 10**9
ROUND = 2.0
"""Seconds that a reader is given inputs before it is the turn of the next."""


@dataclass
class Count:
    """Of one reader; ``slowest`` in seconds of the processor."""

    inputs: int = 0
    tracebacks: int = 0
    hangs: int = 0
    memory: int = 0
    slowest: float = 0.0
    seen: set[str] = field(default_factory=set)


class Over(BaseException):
    """The round is over."""


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def judge(target: Target, given: bytes, count: Count) -> None:
    """Read one input, and note what went wrong."""
    began, before, fault = time.process_time(), peak(), ""
    try:
        faultless(target, given)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
        count.tracebacks += 1
    seconds = time.process_time() - began
    count.inputs += 1
    count.slowest = max(count.slowest, seconds)
    if seconds > SLOW:
        fault, count.hangs = f"{seconds:.0f} s", count.hangs + 1
    if peak() - before > LARGE:
        fault, count.memory = f"{(peak() - before) / 1e9:.1f} GB", count.memory + 1
    if fault and fault not in count.seen:
        count.seen.add(fault)
        path = CORPUS / f"{target.name}.{hashlib.sha256(given).hexdigest()[:8]}"
        path.write_bytes(given)
        print(f"{target.name}: {fault}, kept as {path.name}", flush=True)


def play(target: Target, count: Count, number: int) -> None:
    """One round: inputs of a seed of its own."""
    until = time.process_time() + ROUND

    @seed(number)
    @settings(
        max_examples=10**6,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def read(content: bytes) -> None:
        judge(target, content, count)
        if time.process_time() > until:
            raise Over

    try:
        read()
    except Over:
        return


def main(minutes: float, names: list[str]) -> int:
    torch.set_num_threads(1)
    known = targets()
    chosen = [known[name] for name in names] or list(known.values())
    counts = {target.name: Count() for target in chosen}
    began = time.monotonic()
    number = int(time.time())
    while time.monotonic() - began < 60 * minutes:
        for target in chosen:
            number += 1
            play(target, counts[target.name], number)
    rows = {name: {k: v for k, v in asdict(count).items() if k != "seen"} for name, count in counts.items()}
    for name, row in rows.items():
        print(f"{name:<16} {row['inputs']:>9,} inputs, slowest {row['slowest']:.2f} s")
    whole = {
        key: sum(row[key] for row in rows.values()) for key in ("inputs", "tracebacks", "hangs", "memory")
    }
    print(json.dumps(whole))
    return 1 if whole["tracebacks"] or whole["hangs"] or whole["memory"] else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
