"""The randomised-weights check: a method that says the same of a model that has learned nothing explains
nothing that was learned (Adebayo et al., "Sanity Checks for Saliency Maps", 2018).

Every tensor of the model keeps its numbers, but in a random order, so that sizes stay as they were and all
that was learned is gone.
"""

from copy import deepcopy

import torch
from torch import Generator, nn


@torch.no_grad()
def shuffled_weights(model: nn.Module, *, seed: int = 0) -> nn.Module:
    """A copy of ``model`` with the entries of each tensor in a random order."""
    other, generator = deepcopy(model), Generator().manual_seed(seed)
    for weight in other.parameters():
        order = torch.randperm(weight.numel(), generator=generator)
        weight.copy_(weight.flatten()[order].view_as(weight))
    return other
