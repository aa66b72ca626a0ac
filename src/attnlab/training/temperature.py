"""A temperature for the logits of a trained model, so that its probabilities mean something.

    p = softmax(logits / t),    t = argmin over t of the mean of -log p(target) on validation data

(Guo et al., "On Calibration of Modern Neural Networks", 2017). Smoothed labels, for one, leave a model at
0.74 where it is right 98 times out of 100. A division by t > 0 changes no order of logits, so no answer.

With b = 1/t the loss is convex, and its slope is the mean of E_p[logit] - logit of the target; the slope
is 0 at the best b, which bisection of log b finds. Each token of an answer counts as one, fed the true
tokens before it. A model without a mistake is best at t = 0: there is nothing to fit, and t stays 1.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.devices import device_of
from attnlab.images import has_images
from attnlab.model import Model
from attnlab.sets import Examples
from attnlab.specs import Task

BATCH = 250
LARGEST = 20.0
"""The most that a temperature is, and its inverse the least."""
HALVINGS = 40
DIGITS = 6
"""Significant ones; more would tell of rounding."""
MOST_LOGITS = 2**24
"""Where answers are long and vocabularies large, the first examples are enough."""


def fit_temperature(logits: Float[Tensor, "N V"], targets: Int[Tensor, "N"]) -> float:
    """The temperature with the lowest loss; 1 where no target is missed."""
    if (logits.argmax(dim=-1) == targets).all():
        return 1.0
    logits = logits.double()
    wanted = logits.gather(-1, targets[:, None]).mean()
    low, high = -math.log(LARGEST), math.log(LARGEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        expected = (logits * (logits * math.exp(middle)).softmax(dim=-1)).sum(dim=-1).mean()
        low, high = (low, middle) if expected > wanted else (middle, high)
    return float(f"{math.exp(-(low + high) / 2):.{DIGITS}g}")


@torch.inference_mode()
def answers_of(
    task: Task, model: Model, examples: Examples
) -> tuple[Float[Tensor, "N V"], Int[Tensor, "N"]]:
    """The logits of what can be said, and the target, of each token of ``examples``."""
    each, targets, size = list[Tensor](), list[Tensor](), 0
    for start in range(0, len(examples), BATCH):
        part = examples[slice(start, start + BATCH)].to(device_of(model))
        logits = model(*part.inputs).flatten(0, -2).cpu()
        each.append(logits[:, : len(task.classes)] if has_images(task) else logits)
        targets.append(part.targets.flatten().cpu())
        size += each[-1].numel()
        if size >= MOST_LOGITS:
            break
    return torch.cat(each), torch.cat(targets)
