"""Muon for stacks of matrices (``training/optimisers.py``) against ``torch.optim.Muon``, in turn.

    python benchmarks/muon.py                             # a table, some minutes on two idle cores
    python benchmarks/muon.py --json                      # the same as JSON
    python benchmarks/muon.py --out results/muon/step.json

A step is one of the presets' trainings: forward and backward pass, clipping, update and averaging on one
batch in memory; only the optimiser of the hidden matrices differs. Torch's takes no kernels of
convolutions, so each of them is copied into a matrix and back. Ratios say how many times as long torch's
takes; they are taken within a round: by the clock, each side with the number of threads that suits it best,
and by the time that the processor spends on one thread, which other programs hardly touch. How many cores
these took meanwhile is written down.

Both are then trained in float32 from the same start on the same batches, and what they have learned is
compared: the bytes of their weights, the largest difference of a weight, and validation accuracy.
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
import tyro
from torch import Tensor, nn

from attnlab.cores import read_load, taken_since
from attnlab.presets import preset
from attnlab.runs import describe_environment
from attnlab.sets import Examples
from attnlab.specs import Muon, Spec
from attnlab.storage import write_json
from attnlab.training.engines import TorchEngine, has_half_products
from attnlab.training.optimisers import Optimisers, StackedMuon
from attnlab.training.threads import keep_blocks
from attnlab.training.trainer import Trainer

PRESETS = ("sorting/default", "digits/vit", "grids/default")
WAYS = ("ours", "torch")
PROCESSOR = "processor"

Step = Callable[[], object]


@dataclass(frozen=True)
class Options:
    """What to measure."""

    presets: tuple[str, ...] = PRESETS
    rounds: int = 9
    """Each way is timed so often, in turn."""
    steps: int = 5
    """Steps of one timing."""
    threads: tuple[int, ...] = (1, 2)
    """Numbers of torch's threads."""
    trained: int = 200
    """Steps of the two trainings that are compared."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment; other presets in it stay."""


class TorchsMuon(torch.optim.Muon):
    """Torch's own; a kernel is a matrix of its own, copied there and back at each step."""

    def __init__(self, weights: Iterable[nn.Parameter], spec: Muon, lr: float) -> None:
        weights = list(weights)
        self._kernels = [
            (each, nn.Parameter(each.detach().flatten(1).clone())) for each in weights if each.ndim > 2
        ]
        matrices = [each for each in weights if each.ndim == 2] + [matrix for _, matrix in self._kernels]
        super().__init__(
            matrices,
            lr=lr,
            momentum=spec.momentum,
            weight_decay=spec.weight_decay,
            adjust_lr_fn="match_rms_adamw",
        )

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for kernel, matrix in self._kernels:
            assert kernel.grad is not None
            matrix.grad, kernel.grad = kernel.grad.flatten(1), None
        super().step()  # type: ignore[no-untyped-call]
        for kernel, matrix in self._kernels:
            kernel.copy_(matrix.view_as(kernel))


def main(options: Options) -> None:
    keep_blocks()
    result = {name: compare(preset(*name.split("/")), options) for name in options.presets}
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        about = {"command": "python benchmarks/muon.py", "environment": describe_environment().to_json()}
        known = json.loads(options.out.read_text())["presets"] if options.out.exists() else {}
        write_json(options.out, {**about, "presets": {**known, **result}})
    print(json.dumps(result, indent=1) if options.json else table(result))


def compare(spec: Spec, options: Options) -> dict[str, Any]:
    """Times of steps and of updates alone, and what both have learned after some."""
    trainers = {way: trainer(spec, way) for way in WAYS}
    batch = trainers["ours"].data.train[slice(0, spec.training.batch)]
    batch = Examples(batch.inputs, batch.targets)  # made once
    before = read_load()
    whole = in_turn({way: _step(each, batch) for way, each in trainers.items()}, options)
    others = taken_since(before)
    alone = in_turn({way: _update(each, batch) for way, each in trainers.items()}, options)
    return {
        "products": "bfloat16" if has_half_products(spec.training, trainers["ours"].device) else "float32",
        "matrices": len(hidden(trainers["ours"]).param_groups[0]["params"]),
        "ratio": median(map(_ratio, whole)),
        "ratio_lowest": min(map(_ratio, whole)),
        "ratio_processor": median(map(_processor_ratio, whole)),
        "ratio_update": median(map(_ratio, alone)),
        "milliseconds": _milliseconds(whole),
        "milliseconds_update": _milliseconds(alone),
        "cores_taken_by_others": others,
        "learned": learned(spec, options.trained),
        "rounds": whole,
    }


def trainer(spec: Spec, way: str) -> Trainer:
    """A training at its start; torch's optimiser in the place of ours, if ``way`` says so."""
    found = Trainer(spec)
    if way == "torch":
        assert isinstance(found.engine, TorchEngine)
        assert isinstance(spec.training.optimiser, Muon)
        ours, rest = found.engine.optimisers.parts
        theirs = TorchsMuon(ours.param_groups[0]["params"], spec.training.optimiser, spec.training.lr)
        found.engine.optimisers = Optimisers([theirs, rest])
    return found


def hidden(found: Trainer) -> torch.optim.Optimizer:
    """Who moves the hidden matrices."""
    assert isinstance(found.engine, TorchEngine)
    first = found.engine.optimisers.parts[0]
    assert isinstance(first, StackedMuon | TorchsMuon)
    return first


def _step(found: Trainer, batch: Examples) -> Step:
    return lambda: found.update(batch)


def _update(found: Trainer, batch: Examples) -> Step:
    """The update of the hidden matrices by itself, with the gradients of one batch."""
    weights = list(found.model.parameters())
    loss = nn.functional.cross_entropy(found.model(*batch.inputs).flatten(0, -2), batch.targets.flatten())
    slopes = torch.autograd.grad(loss, weights)
    muon = hidden(found)

    def update() -> None:
        for weight, slope in zip(weights, slopes, strict=True):
            weight.grad = slope
        muon.step()

    return update


def in_turn(ways: dict[str, Step], options: Options) -> list[dict[str, float]]:
    """Milliseconds of each way and number of threads (``torch, 2``), round by round, in changing order; and
    those of the processor for one thread (``torch, processor``).
    """
    for step in ways.values():
        step()
    rounds = []
    for number in range(options.rounds):
        row = {}
        for count in options.threads:
            torch.set_num_threads(count)
            for name, step in list(ways.items())[:: 1 if number % 2 == 0 else -1]:
                began = time.perf_counter(), time.process_time()
                for _ in range(options.steps):
                    step()
                clock, processor = time.perf_counter() - began[0], time.process_time() - began[1]
                row[f"{name}, {count}"] = clock / options.steps * 1e3
                if count == 1:
                    row[f"{name}, {PROCESSOR}"] = processor / options.steps * 1e3
        rounds.append(row)
    return rounds


def _best(row: dict[str, float], way: str) -> float:
    """By the clock, with the number of threads that suits ``way``."""
    return min(
        spent for name, spent in row.items() if name.startswith(f"{way}, ") and PROCESSOR not in name
    )


def _ratio(row: dict[str, float]) -> float:
    return _best(row, "torch") / _best(row, "ours")


def _processor_ratio(row: dict[str, float]) -> float:
    return row[f"torch, {PROCESSOR}"] / row[f"ours, {PROCESSOR}"]


def _milliseconds(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {way: median(_best(row, way) for row in rounds) for way in WAYS}


def learned(spec: Spec, steps: int) -> dict[str, Any]:
    """Both trainings after so many steps, with one thread."""
    torch.set_num_threads(1)
    short = replace(spec, training=replace(spec.training, steps=steps, precision="float32"))
    weights: dict[str, list[Tensor]] = {}
    accuracy = {}
    for way in WAYS:
        found = trainer(short, way)
        found.train()
        weights[way] = list(found.model.state_dict().values())
        accuracy[way] = found.measure(found.data.valid).exact_match
    pairs = list(zip(weights["ours"], weights["torch"], strict=True))
    return {
        "steps": steps,
        "same_bytes": all(torch.equal(ours, theirs) for ours, theirs in pairs),
        "largest_difference": max(float((ours - theirs).abs().max()) for ours, theirs in pairs),
        "valid_accuracy": accuracy,
    }


def table(result: dict[str, Any]) -> str:
    lines = []
    for name, found in result.items():
        whole, alone, told = found["milliseconds"], found["milliseconds_update"], found["learned"]
        lines += [
            f"{name}: {found['matrices']} matrices and kernels, products in {found['products']}",
            f"  a step: {whole['ours']:.2f} ms, with torch's Muon {whole['torch']:.2f} ms; "
            f"ratio {found['ratio']:.3f}, lowest of a round {found['ratio_lowest']:.3f}, of the processor "
            f"{found['ratio_processor']:.3f}; others took {found['cores_taken_by_others']:.2f} cores",
            f"  its update of these alone: {alone['ours']:.2f} ms, torch's {alone['torch']:.2f} ms; "
            f"ratio {found['ratio_update']:.2f}",
            f"  after {told['steps']} steps: {'the same bytes' if told['same_bytes'] else 'other bytes'}, "
            f"weights at most {told['largest_difference']:.2g} apart, validation accuracy "
            f"{told['valid_accuracy']['ours']:.4f} and {told['valid_accuracy']['torch']:.4f}",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main(tyro.cli(Options))
