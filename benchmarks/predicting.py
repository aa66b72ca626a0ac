"""``attnlab predict RUN -``: what reading, showing and printing cost beside the model, and memory by lines.

    python benchmarks/predicting.py                                     # a table, some minutes
    python benchmarks/predicting.py --json                              # the same as JSON
    python benchmarks/predicting.py --out results/predict/streaming.json

The model alone answers the same sums as one batch after the other of tokens that are ready, with their
probabilities. Both are measured in turn by the time of the processor, on one thread, so other programs
disturb little; ``overhead`` is the time of the command over that of the model, less 1. Then one process
answers all ``lines`` on all cores: its memory is the peak after the first tenth of them and at the end;
``seconds`` are of the processor, ``lines_a_second`` is by the clock, so that only an idle machine tells it.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import BufferedReader, BytesIO, RawIOBase, TextIOWrapper
from os import cpu_count
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import torch
import tyro

from attnlab.analysis.subjects import batches
from attnlab.cli.predict import command
from attnlab.front.loading import load
from attnlab.runs import describe_environment
from attnlab.storage import write_json

MIB = 2**20
COMMAND = "python benchmarks/predicting.py"
COUNTS = ("run", "round", "rounds", "lines")


@dataclass(frozen=True)
class Options:
    """What to measure."""

    run: str = "zoo:adder"
    """A run that adds."""
    round: int = 10_000
    """Lines of a round."""
    rounds: int = 9
    lines: int = 1_000_000
    """Lines of the process whose memory is measured."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


@dataclass(frozen=True)
class Streaming:
    """Lines a second of one core, of the model alone and of the command, medians over the rounds; MiB."""

    run: str
    rounds: int
    lines_a_round: int
    model_alone: float
    streamed: float
    overhead: float
    lines: int
    threads: int
    seconds: float
    lines_a_second: float
    memory_after_a_tenth: float
    memory_at_the_end: float


def main(options: Options) -> None:
    torch.set_num_threads(1)
    pairs = [_round(options, seed) for seed in range(options.rounds + 1)][1:]  # the first warms up
    words = [sys.executable, __file__, "--whole", options.run, str(options.lines)]
    whole = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    found = Streaming(
        run=options.run,
        rounds=options.rounds,
        lines_a_round=options.round,
        model_alone=round(options.round / median(alone for alone, _ in pairs), 1),
        streamed=round(options.round / median(both for _, both in pairs), 1),
        overhead=round(median(both / alone for alone, both in pairs) - 1, 4),
        **whole,
    )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        given = [f"--{name} {value}" for name, value in asdict(options).items() if name in COUNTS]
        command, environment = " ".join([COMMAND, *given]), describe_environment().to_json()
        write_json(options.out, {"command": command, "environment": environment, **asdict(found)})
    if options.json:
        print(json.dumps(asdict(found), indent=2))
    else:
        for name, value in asdict(found).items():
            print(f"{name:<22} {value}")


def _round(options: Options, seed: int) -> tuple[float, float]:
    """Seconds of the processor for the same sums: the model alone, and the command."""
    lines = list(_sums(options.round, seed))
    run = load(options.run)
    ((_, examples),) = run.task.parse_all([line.decode() for line in lines])
    began = time.process_time()
    with torch.inference_mode():
        for part in batches(examples, run.model):
            run.model.answer_surely(part.inputs[0], start=run.task.start, length=run.task.target_length)
    between = time.process_time()
    _command(options.run, BufferedReader(_Lines(iter(lines))))
    return between - began, time.process_time() - between


def _command(run: str, given: Any) -> None:
    before, sys.stdin = sys.stdin, TextIOWrapper(given)
    try:
        with Path("/dev/null").open("w") as nowhere, redirect_stdout(nowhere):
            command(run, ["-"])
    finally:
        sys.stdin = before


def _sums(count: int, seed: int) -> Iterator[bytes]:
    rng = Random(seed)
    for _ in range(count):
        yield b"%d+%d\n" % (rng.randrange(1000), rng.randrange(1000))


class _Lines(RawIOBase):
    """Lines as a file that is made while it is read."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines, self._left = lines, BytesIO()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._left.read(len(buffer))
        if not content:
            line = next(self._lines, b"")
            content, self._left = line[: len(buffer)], BytesIO(line[len(buffer) :])
        buffer[: len(content)] = content
        return len(content)


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB, 1)


def _whole(run: str, count: int) -> None:
    """Answer so many lines in this process, and print what it took."""
    torch.set_num_threads(cpu_count() or 1)
    peaks = []

    def lines() -> Iterator[bytes]:
        for number, line in enumerate(_sums(count, 0)):
            if number == count // 10:
                peaks.append(_peak())
            yield line

    load(run).predict("1+1")  # reads the weights
    began, clock = time.process_time(), time.perf_counter()
    _command(run, BufferedReader(_Lines(lines())))
    seconds, passed = time.process_time() - began, time.perf_counter() - clock
    found = {
        "lines": count,
        "threads": torch.get_num_threads(),
        "seconds": round(seconds, 1),
        "lines_a_second": round(count / passed, 1),
        "memory_after_a_tenth": peaks[0],
        "memory_at_the_end": _peak(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--whole"]:
        _whole(sys.argv[2], int(sys.argv[3]))
    else:
        main(tyro.cli(Options))
