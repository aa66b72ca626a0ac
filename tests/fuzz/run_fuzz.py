"""``scripts/fuzz MINUTES [READER ...]``: inputs that are nearly right for every reader, in turn.

It counts what goes wrong: tracebacks, hangs (over 5 s of the processor for an input), memory (the process
ever held over 1 GB more than before the first input). Each input that did is kept in ``tests/fuzz/corpus``,
which the tests go through. With ``--out`` the counts are added to those of a file, so that many inputs can
be given in parts.
"""

import hashlib
import json
import resource
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import torch
import tyro
from targets import Target, faultless, targets

import attnlab  # noqa: F401  # before torch
from attnlab.runs import describe_environment
from attnlab.storage import make_folder, write_json

CORPUS = Path(__file__).parent / "corpus"
SLOW, LARGE = 5.0, 10**9
ROUND, MOST = 1.0, 2000
"""Seconds that a reader is given inputs before it is the turn of the next, and how many it gets at most: a
reader that takes no time shall not have all."""
PATIENCE = 30.0
"""Seconds after which an input is given up."""


@dataclass(frozen=True)
class Options:
    """How long, and which readers."""

    minutes: tyro.conf.Positional[float] = 1.0
    readers: tyro.conf.Positional[tuple[str, ...]] = ()
    """All by default."""
    inputs: int | None = None
    """Stop after so many, if that is earlier."""
    seed: int | None = None
    """Of the inputs; from the clock by default."""
    out: Path | None = None
    """A file to whose counts these are added."""


@dataclass
class Count:
    """Of one reader; ``slowest`` in seconds of the processor."""

    inputs: int = 0
    tracebacks: int = 0
    hangs: int = 0
    memory: int = 0
    slowest: float = 0.0


WRONG = ("tracebacks", "hangs", "memory")


class HangError(Exception):
    """An input that is given up."""


@dataclass
class Fuzzer:
    """Gives inputs to readers and counts."""

    counts: dict[str, Count]
    most: float
    """Bytes that the process may hold; what holds more moves it up, so that it is blamed alone."""
    seen: set[str] = field(default_factory=set)

    @property
    def inputs(self) -> int:
        return sum(count.inputs for count in self.counts.values())

    def play(self, target: Target, chance: Random, until: int, seconds: float = ROUND) -> None:
        """One round for a reader."""
        end, until = time.process_time() + seconds, min(until, self.inputs + MOST)
        while time.process_time() < end and self.inputs < until:
            self.judge(target, target.inputs(chance))

    def judge(self, target: Target, given: bytes) -> None:
        """Read one input, and note what went wrong."""
        count, began, fault = self.counts[target.name], time.process_time(), ""
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            faultless(target, given)
        except HangError:
            fault = "no end"
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            fault = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
            count.tracebacks += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.process_time() - began
        count.inputs += 1
        count.slowest = max(count.slowest, seconds)
        if seconds > SLOW:
            fault, count.hangs = f"{seconds:.0f} s", count.hangs + 1
        if (held := peak()) > self.most:
            fault, count.memory = f"{held / 1e9:.1f} GB", count.memory + 1
            self.most = held + LARGE
        if fault:
            self._keep(target, given, fault)

    def _keep(self, target: Target, given: bytes, fault: str) -> None:
        """The first input of each fault."""
        if (what := f"{target.name}: {fault}") not in self.seen:
            self.seen.add(what)
            path = CORPUS / f"{target.name}.{hashlib.sha256(given).hexdigest()[:8]}"
            path.write_bytes(given)
            print(f"{what}, kept as {path.name}", flush=True)


def peak() -> int:
    """The most bytes that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def give_up(_signal: int, _frame: FrameType | None) -> None:
    raise HangError


def main(options: Options) -> int:
    torch.set_num_threads(1)
    signal.signal(signal.SIGPROF, give_up)
    known = targets()
    if unknown := [name for name in options.readers if name not in known]:
        sys.exit(f"there is no reader {unknown[0]!r}; there are: {', '.join(known)}")
    chosen = [known[name] for name in options.readers] or list(known.values())
    fuzzer = Fuzzer({target.name: Count() for target in chosen}, peak() + LARGE)
    number = int(time.time()) if options.seed is None else options.seed
    chance, began, before = Random(number), time.monotonic(), peak()
    until = options.inputs or sys.maxsize
    while time.monotonic() - began < 60 * options.minutes and fuzzer.inputs < until:
        for target in chosen:
            fuzzer.play(target, chance, until)
    rows = {name: asdict(count) for name, count in fuzzer.counts.items()}
    part = {"seed": number, "seconds": time.process_time(), "memory_more": peak() - before}
    found = add({**whole(rows), "readers": rows}, part, options.out)
    for name, row in found["readers"].items():
        print(f"{name:<16} {row['inputs']:>9,} inputs, slowest {row['slowest']:.2f} s")
    print(json.dumps(whole(found["readers"])))
    return 1 if any(sum(row[key] for key in WRONG) for row in rows.values()) else 0


def whole(rows: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Of all readers together."""
    return {key: sum(row[key] for row in rows.values()) for key in ("inputs", *WRONG)}


def add(found: dict[str, Any], part: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """``found`` with the counts of the file, which gets them all."""
    if out is None:
        return found
    environment = describe_environment().to_json()
    earlier = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"readers": {}, "parts": []}
    rows = {**earlier["readers"]}
    for name, row in found["readers"].items():
        old = rows.get(name, asdict(Count()))
        rows[name] = {
            key: max(old[key], row[key]) if key == "slowest" else old[key] + row[key] for key in row
        }
    added = {**part, **whole(found["readers"]), "commit": environment.pop("commit", None)}
    about = {"command": "scripts/fuzz MINUTES --out results/fuzz/fuzz.json", "environment": environment}
    result = {**about, **whole(rows), "readers": rows, "parts": [*earlier["parts"], added]}
    make_folder(out.parent)
    write_json(out, result)
    return result


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
