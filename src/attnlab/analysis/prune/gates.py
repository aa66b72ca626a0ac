"""Choosing heads by learned gates, while the weights stay as they are.

Every head's z is multiplied by a gate in [0, 1] that is drawn anew for each example from a hard concrete
distribution with one parameter a (Louizos, Welling and Kingma, 2018; for heads Voita et al., 2019):

    s    = sigmoid((log u - log(1 - u) + a) / beta),    u uniform in (0, 1)
    gate = min(1, max(0, s (zeta - gamma) + gamma)),    so that 0 and 1 themselves are drawn

The parameters minimise the loss plus a price times the expected number of open gates. The price rises
while they are learned, from nothing to more than any head is worth; so the gates close one after the other,
and the order in which they close is the order in which heads can go.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.analysis.ablate.baselines import Baseline, masked
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.models import attentions, heads
from attnlab.notation import Head
from attnlab.progress import Progress, silent

BETA, GAMMA, ZETA = 2 / 3, -0.1, 1.1
STEPS = 400
ROWS = 100  # examples a step
RATE = 0.1
FIRST = 3.0  # gates start nearly open
PRICES = (1e-4, 1.0)  # of one open gate, in units of the loss: first and last


def gate_order(
    model: Model, examples: Examples, baseline: Baseline, *, progress: Progress = silent
) -> list[Head]:
    """All heads in the order in which their gates close; ``examples`` should be training examples."""
    counts = {path: attention.heads for path, attention in attentions(model).items()}
    chance = torch.Generator().manual_seed(0)
    opening = torch.full((sum(counts.values()),), FIRST, requires_grad=True)
    optimiser = torch.optim.Adam([opening], lr=RATE)
    closed_at = torch.zeros(len(opening))
    for step in range(STEPS):
        part = examples[torch.randint(len(examples), (ROWS,), generator=chance)]
        u = torch.rand(ROWS, len(opening), generator=chance).clamp(1e-6, 1 - 1e-6)
        gates = _gates(torch.sigmoid((u.log() - (1 - u).log() + opening) / BETA))
        mask = dict(zip(counts, torch.split(gates, list(counts.values()), dim=1), strict=True))
        with masked(model, mask, baseline):
            logits = model(*part.inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), part.targets.flatten())
        price = PRICES[0] * (PRICES[1] / PRICES[0]) ** (step / STEPS)
        chance_open = torch.sigmoid(opening - BETA * math.log(-GAMMA / ZETA))  # that a gate is not 0
        (opening.grad,) = torch.autograd.grad(loss + price * chance_open.sum(), opening)
        optimiser.step()
        with torch.no_grad():
            closed_at[_gates(torch.sigmoid(opening)) >= 0.5] = step + 1  # the gate without chance
        progress(step + 1, STEPS)
    # Of those that closed at the same step, or never, the less open one goes first.
    order = sorted(range(len(opening)), key=lambda n: (float(closed_at[n]), float(opening[n].detach())))
    names = heads(model)
    return [names[n] for n in order]


def _gates(s: Tensor) -> Tensor:
    return (s * (ZETA - GAMMA) + GAMMA).clamp(0, 1)
