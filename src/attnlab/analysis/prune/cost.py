"""What a model costs: parameters, multiplications, time."""

import statistics
import time
from copy import deepcopy
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from attnlab.examples import Examples
from attnlab.model import Model

ROUNDS = 15


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


def compare_costs(before: Model, after: Model, examples: Examples) -> dict[str, Any]:
    """Both models' costs; passes over ``examples`` are timed in turns, and the median counts."""
    times: dict[str, list[float]] = {"before": [], "after": []}
    models = {"before": before, "after": after}
    for _ in range(ROUNDS):
        for name, model in models.items():
            began = time.perf_counter()
            with torch.inference_mode():
                model(*examples.inputs)
            times[name].append(time.perf_counter() - began)
    return {
        "examples": len(examples),
        "threads": torch.get_num_threads(),
        **{
            name: {
                "parameters": parameters(model),
                "multiply_adds": multiply_adds(model, examples),
                "seconds": statistics.median(times[name]),
            }
            for name, model in models.items()
        },
    }
