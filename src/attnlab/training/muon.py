"""torch's Muon, with the matrices of one shape orthogonalised together.

Muon (Jordan et al., 2024) turns the momentum M of a matrix into a nearly orthogonal one by five steps of

    X <- a X + (b A + c A A) X,   A = X X^T,   X = M / |M| at first

Small matrices spend that time in calls, not in products: a stack of n of them takes as many calls as one.
"""

from collections import defaultdict
from typing import Any, final

import torch
from torch import Tensor


@final
class StackedMuon(torch.optim.Muon):
    """The same updates as torch's own."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update; nobody here needs a closure."""
        assert closure is None
        for group in self.param_groups:
            learning = [(each, each.grad) for each in group["params"] if each.grad is not None]
            if not learning:
                continue  # such as a block without heads
            weights, slopes = ([*part] for part in zip(*learning, strict=True))
            momenta = [self._momentum(each) for each in weights]
            torch._foreach_lerp_(momenta, slopes, 1 - group["momentum"])
            moves = torch._foreach_lerp(slopes, momenta, group["momentum"])  # Nesterov's
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            for stack in _by_shape(moves):
                turned = orthogonalise(
                    torch.stack([_wide(moves[place]) for place in stack]),
                    group["ns_coefficients"],
                    steps=group["ns_steps"],
                    least=group["eps"],
                )
                for place, update in zip(stack, turned, strict=True):
                    weight = weights[place]
                    rate = group["lr"] * 0.2 * max(weight.shape) ** 0.5  # "match_rms_adamw"
                    weight.add_(update if weight.shape == update.shape else update.T, alpha=-rate)

    def _momentum(self, weight: Tensor) -> Tensor:
        memory: dict[str, Tensor] = self.state[weight]
        if "momentum_buffer" not in memory:
            memory["momentum_buffer"] = torch.zeros_like(weight)
        return memory["momentum_buffer"]


def orthogonalise(
    matrices: Tensor, coefficients: tuple[float, float, float], *, steps: int, least: float
) -> Tensor:
    """A stack of matrices that are at least as wide as high, each made nearly orthogonal, in bfloat16."""
    a, b, c = coefficients
    x = matrices.bfloat16()
    x = x / torch.stack([each.norm() for each in x]).clamp(min=least)[:, None, None]
    for _ in range(steps):
        products = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(products, products, products, beta=b, alpha=c), x, beta=a)
    return x


def _wide(matrix: Tensor) -> Tensor:
    return matrix.T if matrix.shape[0] > matrix.shape[1] else matrix


def _by_shape(matrices: list[Tensor] | tuple[Tensor, ...]) -> list[list[int]]:
    """Places of matrices that have one shape when they lie on the long side."""
    places: dict[torch.Size, list[int]] = defaultdict(list)
    for place, matrix in enumerate(matrices):
        places[_wide(matrix).shape].append(place)
    return list(places.values())
