"""What a training that is watched hands to the doctor, in the place of a run's files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from attnlab.errors import LabError
from attnlab.runs import Metrics, Observed
from attnlab.specs import SGD, AdamW, Muon, Training
from attnlab.specs.training import OptimiserSpec
from attnlab.training.loops import Loop

NUMBERS = 2**24
"""Of first weights that are kept, at most."""
LIKE_ADAM = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam", "Adafactor", "RMSprop")
"""Optimisers whose steps are of the size of the rate, so that they want rates like Adam's."""


@final
@dataclass(frozen=True)
class Watched:
    """A training that was watched."""

    observed: Observed
    metrics: Metrics
    recipe: Training | str
    """How it is trained, or why that is not known."""
    choices: int
    """How many things an answer can be; 0 if that is not known."""
    ended: bool
    first: Mapping[str, Tensor] = field(default_factory=dict)
    """Matrices that training began with, by name; none where a run keeps them."""
    last: Mapping[str, Tensor] = field(default_factory=dict)


def evidence(loop: Loop, first: Mapping[str, Tensor], *, ended: bool) -> Watched:
    """All that is known of ``loop`` by now."""
    named = dict(loop.model.named_parameters())
    return Watched(
        observed=loop.watch.observed(),
        metrics=loop.log.metrics(),
        recipe=recipe_of(loop),
        choices=loop.log.choices,
        ended=ended,
        first=first,
        last={name: named[name].detach().cpu() for name in first if name in named} if ended else {},
    )


@torch.no_grad()
def first_matrices(model: nn.Module) -> dict[str, Tensor]:
    """Copies of matrices that may move; of a large model only of some, evenly spread."""
    named = [
        (name, each) for name, each in model.named_parameters() if each.requires_grad and each.dim() > 1
    ]
    total = sum(each.numel() for _, each in named)
    found, room, stride = dict[str, Tensor](), NUMBERS, max(1, -(-total // NUMBERS))
    for name, each in named[::stride]:
        if each.numel() <= room:
            found[name], room = each.detach().cpu().clone(), room - each.numel()
    return found


def recipe_of(loop: Loop) -> Training | str:
    """As far as an optimiser tells; its highest rate so far is the rate. There is no clip, since none is
    known.
    """
    if loop.optimiser is None:
        return "no optimiser has taken a step"
    name = type(loop.optimiser).__name__
    kind = _kind(loop.optimiser)
    if kind is None:
        return f"what rates {name} wants is not known"
    rate = max((each.lr for each in loop.log.steps), default=loop.rate)
    try:
        return Training(lr=rate, optimiser=kind, clip=0.0, epochs=max(1, len(loop.log.epochs)))
    except LabError as error:
        return str(error)


def _kind(optimiser: Optimizer) -> OptimiserSpec | None:
    group, name = optimiser.param_groups[0], type(optimiser).__name__
    decay = max(float(each.get("weight_decay") or 0.0) for each in optimiser.param_groups)
    if name == "SGD":
        return SGD(momentum=min(float(group["momentum"]), 0.999), weight_decay=decay)
    if name == "Muon":
        return Muon(weight_decay=decay)
    return AdamW(weight_decay=decay) if name in LIKE_ADAM else None
