"""Ablating every head of the shipped adder against the plain loop, in turn, to the same numbers.

    python benchmarks/ablation.py                     # a table, about ten minutes on two idle cores
    python benchmarks/ablation.py --json              # the same as JSON
    python benchmarks/ablation.py --out results/ablation/speed.json

The plain loop is what one writes first: for each head a hook that puts zero in its place, and a full greedy
decoding without cache; it has whichever number of torch's threads is faster for it. ``one_pass`` is the
same loop with one pass by teacher forcing instead of decoding. Ratios are taken within a round, so that a
slow minute touches all.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
import tyro
from torch import Tensor, nn

from attnlab.analysis.ablate.ablation import evaluate_without
from attnlab.analysis.ablate.baselines import head_names, zero_baseline
from attnlab.analysis.subjects import BATCH, Subject, batches, judge, subject_of
from attnlab.model import Model
from attnlab.models import Seq2Seq
from attnlab.problems.addition import Addition
from attnlab.runs import describe_environment, load_model, open_run
from attnlab.sets import Examples
from attnlab.storage import write_json

Found = dict[str, int]
"""How many examples are wholly right without each head."""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    examples: int = 2000
    """Sums of the test split."""
    rounds: int = 5
    """Each way is timed so often, in turn."""
    threads: int = 2
    """Workers of ours; the plain loop is tried with one thread and with so many."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    result = measure(options)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        command = "python benchmarks/ablation.py"
        write_json(
            options.out, {"command": command, "environment": describe_environment().to_json(), **result}
        )
    print(json.dumps(result, indent=1) if options.json else table(result))


def measure(options: Options) -> dict[str, Any]:
    """All figures; numbers that differ end it."""
    run = open_run("zoo:adder")
    task, model = run.spec().task, load_model(run)
    assert isinstance(task, Addition)
    assert isinstance(model, Seq2Seq)
    subject = subject_of(
        task, model, task.examples(task.split_pairs(run.spec().seed)[2][: options.examples])
    )
    heads = head_names(model)
    threads = better_threads(task, model, subject, heads[::6], options.threads)
    ways: dict[str, tuple[int, Callable[[], Found]]] = {
        "ours": (options.threads, lambda: ours(subject, heads)),
        "plain": (threads, lambda: plain(task, model, subject, heads)),
        "one_pass": (threads, lambda: one_pass(model, subject, heads)),
    }
    rounds = []
    for _ in range(options.rounds):
        seconds, counts = {}, []
        for name, (count, way) in ways.items():
            spent, found = timed(way, count)
            seconds[name] = spent
            counts.append(found)
        if any(found != counts[0] for found in counts):
            raise SystemExit(f"the ways differ: {counts}")
        rounds.append(seconds)
    return {
        "ratio": median(row["plain"] / row["ours"] for row in rounds),
        "ratio_lowest": min(row["plain"] / row["ours"] for row in rounds),
        "ratio_to_one_pass": median(row["one_pass"] / row["ours"] for row in rounds),
        "seconds": median(row["ours"] for row in rounds),
        "plain_seconds": median(row["plain"] for row in rounds),
        "one_pass_seconds": median(row["one_pass"] for row in rounds),
        "threads": options.threads,
        "plain_threads": threads,
        "examples": len(subject.examples),
        "heads": len(heads),
        "right_without": counts[0],
        "rounds": rounds,
    }


def ours(subject: Subject, heads: list[str]) -> Found:
    sets = [frozenset((head,)) for head in heads]
    answers = evaluate_without(subject, sets, zero_baseline(subject.model))
    return {head: int(answers[frozenset((head,))].exact.sum()) for head in heads}


def plain(task: Addition, model: Seq2Seq, subject: Subject, heads: list[str]) -> Found:
    """One hook and one greedy decoding without cache a head."""

    def count(part: Examples) -> int:
        said = model.greedy(part.inputs[0], start=task.start, length=task.target_length, cached=False)
        return int((said == part.targets).all(dim=1).sum())

    return hooked(model, subject, heads, count)


def one_pass(model: Seq2Seq, subject: Subject, heads: list[str]) -> Found:
    """One hook and one pass by teacher forcing a head."""

    def count(part: Examples) -> int:
        return int(judge(model(*part.inputs), part.targets).exact.sum())

    return hooked(model, subject, heads, count)


@torch.inference_mode()
def hooked(model: Model, subject: Subject, heads: list[str], count: Callable[[Examples], int]) -> Found:
    found = {}
    for head in heads:
        with without(model, head):
            found[head] = sum(count(part) for part in batches(subject.examples, model))
    return found


@contextmanager
def without(model: Model, head: str) -> Iterator[None]:
    """A hook on the output projection that puts zero where the head's values come in."""
    path, _, index = head.rpartition(".")
    width = int(model.get_submodule(path).head_width)  # type: ignore[arg-type]
    own = slice(int(index) * width, (int(index) + 1) * width)

    def clear(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        mixed = given[0].clone()
        mixed[..., own] = 0
        return (mixed,)

    hook = model.get_submodule(f"{path}.output").register_forward_pre_hook(clear)
    try:
        yield
    finally:
        hook.remove()


def better_threads(task: Addition, model: Seq2Seq, subject: Subject, heads: list[str], threads: int) -> int:
    """The number of threads with which the plain loop is faster, tried in short."""
    few = Subject(model, subject.examples[slice(0, BATCH)], {}, subject.places)
    spent = {
        count: median(timed(lambda: plain(task, model, few, heads), count)[0] for _ in range(3))
        for count in sorted({1, threads})
    }
    return min(spent, key=spent.__getitem__)


def timed(way: Callable[[], Found], threads: int) -> tuple[float, Found]:
    torch.set_num_threads(threads)
    began = time.perf_counter()
    found = way()
    return time.perf_counter() - began, found


def table(result: dict[str, Any]) -> str:
    shown = {key: value for key, value in result.items() if key not in ("rounds", "right_without")}
    return "\n".join(
        f"{key:20}{value:>12.4g}" if isinstance(value, float) else f"{key:20}{value!s:>12}"
        for key, value in shown.items()
    )


if __name__ == "__main__":
    main(tyro.cli(Options))
