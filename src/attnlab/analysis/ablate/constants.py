"""The optimal constant of a head (Li and Janson, 2024):

    c* = argmin over c of the mean loss over training examples with z of the head replaced by c

one vector of K numbers, the same at all places, so that W_o c* can be added to the output bias and the head
be cut away. It is found by gradient descent on c alone (Adam; Kingma and Ba, 2015), from the better of zero
and the mean of z, and is never worse than either on the examples it is fitted on. Each head's constant is
the one for which all other heads are there.

The heads of an attention are fitted at once: each has its own rows of a batch, so no head's gradient meets
another's constant. What comes before the attention is computed once and supplied.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.ablate.baselines import Baseline, masked, mean_baseline, zero_baseline
from attnlab.analysis.ablate.without import run_pass, until
from attnlab.analysis.parallel import Tick, in_parallel
from attnlab.analysis.subjects import BATCH, batches
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.progress import Progress, silent
from attnlab.taps import supply

STEPS = 120
ROWS = 50  # examples a step
RATE = 0.3  # first step size, times the root mean square of z; it falls to 0


def optimal_baseline(
    model: Model, examples: Examples, *, steps: int = STEPS, seed: int = 0, progress: Progress = silent
) -> Baseline:
    """The optimal constant of every head on ``examples``, which should be training examples."""
    starts = [zero_baseline(model), mean_baseline(model, examples, by_place=False)]
    paths = list(starts[1].values)

    def work(model: Model, path: str, tick: Tick) -> Tensor:
        return _Fit(model, path, examples).run([each.values[path] for each in starts], steps, seed, tick)

    found = in_parallel(model, paths, work, steps=steps * len(paths), progress=progress)
    return Baseline("optimal", dict(zip(paths, found, strict=True)))


class _Fit:
    """Constants of all heads of one attention; what comes before these mix is ``known``."""

    def __init__(self, model: Model, path: str, examples: Examples) -> None:
        self.model, self.path, self.examples = model, path, examples
        self.heads = attentions(model)[path].heads
        with torch.no_grad():
            passes = (run_pass(model, part, {}, {}, Baseline("none", {})) for part in batches(examples))
            parts = [until(values, path) for _, values in passes]
        self.known = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def run(
        self, starts: list[Float[Tensor, "1 H 1 K"]], steps: int, seed: int, tick: Tick
    ) -> Float[Tensor, "1 H 1 K"]:
        start, least = self.best([(each, self.loss(each)) for each in starts])
        constant = start.clone().requires_grad_()
        rate = RATE * float(self.known[f"{self.path}.z"].square().mean().sqrt())
        optimiser = torch.optim.Adam([constant], lr=rate, betas=(0.9, 0.99))
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=steps)
        chance = torch.Generator().manual_seed(seed)
        for _ in range(steps):
            rows = torch.randint(len(self.examples), (ROWS,), generator=chance)
            (constant.grad,) = torch.autograd.grad(self.losses(rows, constant).sum(), constant)
            optimiser.step()
            schedule.step()
            tick()
        end = constant.detach()
        return self.best([(start, least), (end, self.loss(end))])[0]

    def losses(self, rows: Int[Tensor, "N"], constant: Float[Tensor, "1 H 1 K"]) -> Float[Tensor, "H"]:
        """The mean loss over ``rows`` without each head, its constant in its place."""
        mask = {self.path: 1 - torch.eye(self.heads).repeat_interleave(len(rows), dim=0)}
        rows = rows.repeat(self.heads)
        part, known = self.examples[rows], {name: value[rows] for name, value in self.known.items()}
        towards = Baseline("optimal", {self.path: constant})
        with supply(self.model, known), masked(self.model, mask, towards):
            logits = self.model(*part.inputs)
        each = F.cross_entropy(logits.flatten(0, -2), part.targets.flatten(), reduction="none")
        return each.reshape(self.heads, -1).mean(dim=1)

    @torch.no_grad()
    def loss(self, constant: Float[Tensor, "1 H 1 K"]) -> Float[Tensor, "H"]:
        """The sum over all examples of the loss without each head."""
        parts = torch.split(torch.arange(len(self.examples)), max(1, BATCH // self.heads))
        return torch.stack([len(part) * self.losses(part, constant) for part in parts]).sum(dim=0)

    def best(
        self, options: list[tuple[Float[Tensor, "1 H 1 K"], Float[Tensor, "H"]]]
    ) -> tuple[Float[Tensor, "1 H 1 K"], Float[Tensor, "H"]]:
        """For each head the constant with the lowest loss, and this loss."""
        constants, losses = zip(*options, strict=True)
        least = torch.stack(losses).min(dim=0)
        return torch.cat(constants)[least.indices, torch.arange(self.heads)][None], least.values
