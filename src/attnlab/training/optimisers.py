"""Which optimisers train a model, and which parameter goes to which."""

from typing import final

import torch
from torch import Tensor, nn

from attnlab.blocks import DecoderBlock, EncoderBlock
from attnlab.spec import SGD, AdamW, Muon, OptimiserSpec
from attnlab.training.muon import StackedMuon


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
            part.load_state_dict({**part.state_dict(), "state": state})


def _laid_out(value: Tensor, weight: Tensor) -> Tensor:
    """``value`` with the strides of its weight: fused kernels walk through the memory of both at once."""
    return torch.empty_like(weight).copy_(value) if value.shape == weight.shape else value


def build_optimisers(model: nn.Module, spec: OptimiserSpec, lr: float) -> Optimisers:
    """The optimisers of a training spec over all parameters of ``model``."""
    every = list(model.parameters())
    match spec:
        case AdamW():
            betas = (spec.beta1, spec.beta2)
            return Optimisers(
                [torch.optim.AdamW(every, lr=lr, betas=betas, weight_decay=spec.weight_decay, fused=True)]
            )
        case SGD():
            return Optimisers(
                [
                    torch.optim.SGD(
                        every, lr=lr, momentum=spec.momentum, weight_decay=spec.weight_decay, fused=True
                    )
                ]
            )
        case Muon():
            hidden = hidden_matrices(model)
            chosen = {id(parameter) for parameter in hidden}
            rest = [parameter for parameter in every if id(parameter) not in chosen]
            muon = StackedMuon(hidden, lr=lr, momentum=spec.momentum, weight_decay=spec.weight_decay)
            betas = (spec.beta1, spec.beta2)
            adamw = torch.optim.AdamW(rest, lr=lr * spec.rest, betas=betas, weight_decay=0.0, fused=True)
            return Optimisers([muon, adamw])


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
