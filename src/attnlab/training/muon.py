"""Muon, with the matrices of one shape orthogonalised together, and for convolutions too.

Muon (Jordan et al., 2024) turns the momentum M of a matrix into a nearly orthogonal one by five steps of

    X <- a X + (b A + c A A) X,   A = X X^T,   X = M / |M| at first

Small matrices spend that time in calls, not in products: a stack of n of them takes as many calls as one.
The kernel of a convolution is the matrix from all that a filter sees, input channels times pixels, to its
output channels, as in Jordan's own trainings on images.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import final

import torch
from torch import Tensor, nn

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b and c."""
_STEPS = 5
_LEAST = 1e-7  # of |M|


@final
class StackedMuon(torch.optim.Optimizer):
    """The same updates as torch's own, scaled to the size of AdamW's (``match_rms_adamw``)."""

    def __init__(
        self, weights: Iterable[nn.Parameter], *, lr: float, momentum: float, weight_decay: float
    ) -> None:
        super().__init__(weights, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """One update; nobody here needs a closure."""
        for group in self.param_groups:
            learning = [(each, each.grad) for each in group["params"] if each.grad is not None]
            if not learning:
                continue  # such as a block without heads
            weights, slopes = ([*part] for part in zip(*learning, strict=True))
            momenta = [self._momentum(each) for each in weights]
            torch._foreach_lerp_(momenta, slopes, 1 - group["momentum"])
            ahead = torch._foreach_lerp(slopes, momenta, group["momentum"])  # Nesterov's
            moves = [each.flatten(1) for each in ahead]
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            for stack in _by_shape(moves):
                turned = orthogonalise(torch.stack([_wide(moves[place]) for place in stack]))
                for place, update in zip(stack, turned, strict=True):
                    weight, shape = weights[place], moves[place].shape
                    rate = group["lr"] * 0.2 * max(shape) ** 0.5
                    lying = update if update.shape == shape else update.T
                    weight.add_(lying.reshape(weight.shape), alpha=-rate)

    def _momentum(self, weight: Tensor) -> Tensor:
        memory: dict[str, Tensor] = self.state[weight]
        if "momentum_buffer" not in memory:
            memory["momentum_buffer"] = torch.zeros_like(weight)
        return memory["momentum_buffer"]


def orthogonalise(matrices: Tensor) -> Tensor:
    """A stack of matrices that are at least as wide as high, each made nearly orthogonal, in bfloat16."""
    a, b, c = COEFFICIENTS
    x = matrices.bfloat16()
    x = x / torch.stack([each.norm() for each in x]).clamp(min=_LEAST)[:, None, None]
    for _ in range(_STEPS):
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
