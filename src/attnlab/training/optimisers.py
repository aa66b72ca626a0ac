"""How weights move: optimisers and which parameter goes to which, learning-rate schedules, averages."""

import math
from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from typing import Generic, TypeVar, final

import torch
from torch import Tensor, nn

from attnlab.blocks import DecoderBlock, EncoderBlock
from attnlab.devices import device_of, has_fused_steps
from attnlab.errors import brief
from attnlab.specs import SGD, AdamW, Constant, Cosine, Muon, OneCycle, OptimiserSpec, Plateau, ScheduleSpec


@final
class Optimisers:
    """One or two optimisers that step together."""

    def __init__(self, parts: list[torch.optim.Optimizer]) -> None:
        self.parts = parts
        self._base = [[group["lr"] for group in part.param_groups] for part in parts]

    def step(self, factor: float) -> None:
        """One update with every learning rate multiplied by ``factor``."""
        for part, rates in zip(self.parts, self._base, strict=True):
            for group, rate in zip(part.param_groups, rates, strict=True):
                group["lr"] = rate * factor
            part.step()
            part.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """Everything the optimisers remember, by name."""
        return {
            f"{i}.{j}.{key}": torch.as_tensor(value)
            for i, part in enumerate(self.parts)
            for j, memory in part.state_dict()["state"].items()
            for key, value in memory.items()
            if value is not None
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take up what ``tensors`` gave."""
        for i, part in enumerate(self.parts):
            weights = [weight for group in part.param_groups for weight in group["params"]]
            state: dict[int, dict[str, Tensor]] = {}
            for name, value in tensors.items():
                which, index, key = name.split(".", 2)
                if int(which) == i:
                    state.setdefault(int(index), {})[key] = _laid_out(value, weights[int(index)])
            for place, memory in state.items():
                _check_memory(part, memory, weights[place])
            part.load_state_dict({**part.state_dict(), "state": state})


_MEMORIES = (
    {"step", "exp_avg", "exp_avg_sq"},  # AdamW
    {"momentum_buffer"},  # SGD and Muon
)
"""What optimisers remember of a weight."""


def _check_memory(part: torch.optim.Optimizer, memory: dict[str, Tensor], weight: Tensor) -> None:
    """Refuse what ``part`` would fail at only when it takes a step."""
    wanted = _MEMORIES[0 if type(part).__name__ == "AdamW" else 1]
    if memory.keys() != wanted:
        raise ValueError(
            f"an optimiser has {brief(sorted(memory))} of a weight, but needs {sorted(wanted)}"
        )
    for name, value in memory.items():
        shape = () if name == "step" else tuple(weight.shape)
        if tuple(value.shape) != shape:
            raise ValueError(f"{name} of an optimiser is {tuple(value.shape)}, but must be {shape}")


def _laid_out(value: Tensor, weight: Tensor) -> Tensor:
    """``value`` with the strides of its weight: fused kernels walk through the memory of both at once."""
    return torch.empty_like(weight).copy_(value) if value.shape == weight.shape else value


def build_optimisers(model: nn.Module, spec: OptimiserSpec, lr: float) -> Optimisers:
    """The optimisers of a training spec over all parameters of ``model``."""
    every, decay = list(model.parameters()), spec.weight_decay
    fused = has_fused_steps(device_of(model)) or None  # None: as torch finds best
    match spec:
        case AdamW():
            return Optimisers([_adamw(every, spec, lr, decay, fused)])
        case SGD(momentum=momentum):
            sgd = torch.optim.SGD(every, lr=lr, momentum=momentum, weight_decay=decay, fused=fused)
            return Optimisers([sgd])
        case Muon():
            hidden = hidden_matrices(model)
            chosen = {id(parameter) for parameter in hidden}
            rest = [parameter for parameter in every if id(parameter) not in chosen]
            muon = StackedMuon(hidden, lr=lr, momentum=spec.momentum, weight_decay=decay)
            return Optimisers([muon, _adamw(rest, spec, lr * spec.rest, 0.0, fused)])


def _adamw(
    weights: list[nn.Parameter], spec: AdamW | Muon, lr: float, decay: float, fused: bool | None
) -> torch.optim.Optimizer:
    betas = (spec.beta1, spec.beta2)
    return torch.optim.AdamW(weights, lr=lr, betas=betas, weight_decay=decay, fused=fused)


def hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """Matrices inside the blocks, kernels between channels: no embedding, no readout, no bias, no norm."""
    blocks = (module for module in model.modules() if isinstance(module, EncoderBlock | DecoderBlock))
    inside = {id(parameter) for block in blocks for parameter in block.parameters()}
    return [
        parameter
        for parameter in model.parameters()
        if (parameter.ndim == 2 and id(parameter) in inside)
        or (parameter.ndim == 4 and parameter.shape[1] > 1)
    ]


COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b and c."""
_STEPS = 5
_LEAST = 1e-7  # of |M|


@final
class StackedMuon(torch.optim.Optimizer):
    """The same updates as torch's Muon, scaled to the size of AdamW's (``match_rms_adamw``), with matrices
    of one shape orthogonalised together, and for convolutions too.

    Muon (Jordan et al., 2024) turns the momentum M of a matrix into a nearly orthogonal one by five steps

        X <- a X + (b A + c A A) X,   A = X X^T,   X = M / |M| at first

    Small matrices spend that time in calls, not in products: a stack of n of them takes as many calls as
    one. ``benchmarks/muon.py`` measures what a training step gains (results/muon). The kernel of a
    convolution is the matrix from all that a filter sees, input channels times pixels, to its output
    channels, as in Jordan's own trainings on images.
    """

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
            stacks = defaultdict(
                list
            )  # places of matrices that have one shape when they lie on the long side
            for place, move in enumerate(moves):
                stacks[_wide(move).shape].append(place)
            for stack in stacks.values():
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


def lr_factor(spec: ScheduleSpec, step: int, total: int, valid_losses: list[float]) -> float:
    """What the peak learning rate is multiplied by at ``step`` of ``total``: a pure function, so that a
    resumed run follows the very same schedule. ``valid_losses`` are those of the epochs that have ended.
    """
    match spec:
        case Constant():
            return _warmup(step, spec.warmup * total)
        case Cosine():
            warmup = spec.warmup * total
            if step < warmup:
                return _warmup(step, warmup)
            return spec.floor + (1 - spec.floor) * _fall((step - warmup) / (total - warmup))
        case OneCycle():
            peak = spec.peak * total
            if step < peak:
                return spec.start + (1 - spec.start) * (1 - _fall(step / peak))
            return _fall((step - peak) / (total - peak))
        case Plateau():
            return spec.factor ** plateaus(valid_losses, spec.patience)


def plateaus(losses: list[float], patience: int) -> int:
    """How often more than ``patience`` epochs in a row brought no new lowest loss."""
    count, waited, lowest = 0, 0, math.inf
    for loss in losses:
        waited = 0 if loss < lowest else waited + 1
        lowest = min(lowest, loss)
        if waited > patience:
            count, waited = count + 1, 0
    return count


def _warmup(step: int, length: float) -> float:
    return 1.0 if step >= length else (step + 1) / (length + 1)


def _fall(share: float) -> float:
    """Half a cosine from 1 at 0 to 0 at 1."""
    return (1 + math.cos(math.pi * share)) / 2


M = TypeVar("M", bound=nn.Module)


@final
class WeightAverage(Generic[M]):
    """Keeps ``model``, an exponential moving average of the one being trained:

        average <- average + (1 - d) (weights - average),  d = min(decay, (1 + n) / (10 + n))

    after n updates. It forgets the random start quickly and then smooths over about 1 / (1 - decay) steps
    (Polyak and Juditsky, 1992; warm-up as in Abadi et al., TensorFlow).
    """

    def __init__(self, trained: M, decay: float) -> None:
        self.model = deepcopy(trained).requires_grad_(False)
        self.decay = decay
        self._average: list[Tensor] = list(self.model.parameters())
        self._weights: list[Tensor] = list(trained.parameters())

    @torch.no_grad()
    def update(self, updates: int) -> None:
        """Move towards the trained weights after ``updates`` steps."""
        decay = min(self.decay, (1 + updates) / (10 + updates))
        torch._foreach_lerp_(self._average, self._weights, 1 - decay)
