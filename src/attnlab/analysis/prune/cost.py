"""What a model costs: parameters, multiplications, time."""

import statistics
import time
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from attnlab.examples import Examples
from attnlab.model import Model

ROUNDS = 15


@dataclass(frozen=True)
class Cost:
    """Learned numbers, multiplications with addition an example, and the median time of a pass."""

    parameters: int
    multiply_adds: int
    seconds: float


@dataclass(frozen=True)
class Costs:
    """Two models, each timed on so many ``examples`` a pass."""

    examples: int
    threads: int
    before: Cost
    after: Cost


def parameters(model: Model) -> int:
    """How many numbers were learned."""
    return sum(parameter.numel() for parameter in model.parameters())


@torch.no_grad()
def multiply_adds(model: Model, examples: Examples) -> int:
    """Multiplications with addition in the matrix products of one example's pass."""
    counter = FlopCounterMode(display=False)
    still = deepcopy(model).requires_grad_(False)  # the counter cannot follow parameters that are viewed
    with counter:
        still(*examples[slice(0, 1)].inputs)
    return int(counter.get_total_flops()) // 2


def compare_costs(before: Model, after: Model, examples: Examples) -> Costs:
    """Both models' costs; passes over ``examples`` are timed in turns, and the median counts."""
    models = (before, after)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for model, own in zip(models, times, strict=True):
            began = time.perf_counter()
            with torch.inference_mode():
                model(*examples.inputs)
            own.append(time.perf_counter() - began)
    costs = (
        Cost(parameters(model), multiply_adds(model, examples), statistics.median(own))
        for model, own in zip(models, times, strict=True)
    )
    return Costs(len(examples), torch.get_num_threads(), *costs)
