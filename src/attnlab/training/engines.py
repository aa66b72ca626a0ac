"""Engines: who computes a step. Both change the same weights in place, so all else of a run is the same.

``TorchEngine`` leaves gradients to autograd and takes any model and optimiser. ``ExplicitEngine`` runs the
hand-written forward and backward passes of ``attnlab.explicit`` on the memory of torch's parameters.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, final, runtime_checkable

import torch
from torch import Tensor, nn

from attnlab.devices import device_of, has_fast_bfloat16
from attnlab.model import Model
from attnlab.sets import Examples
from attnlab.specs import Spec, Training
from attnlab.training.measuring import Measured, compare, cross_entropy, measure, right
from attnlab.training.optimisers import build_optimisers


@runtime_checkable
class Engine(Protocol):
    """What the training loop needs."""

    def step(self, batch: Examples, factor: float) -> tuple[float, float]:
        """Learn from ``batch`` with the learning rate times ``factor``; its loss and exact match before."""

    def measure(self, model: Model, examples: Examples) -> Measured:
        """Loss and accuracy of ``model``, the one that learns or its average."""

    def tensors(self) -> dict[str, Tensor]:
        """What it remembers from step to step, besides the weights."""

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take up what ``tensors`` gave."""


@final
class TorchEngine:
    """Autograd, and torch's optimisers."""

    def __init__(self, model: Model, training: Training) -> None:
        self._model = model
        self._training = training
        self._device = device_of(model)
        self._half = has_half_products(training, self._device)
        self._weights = list(model.parameters())  # walking through modules costs a tenth of a small step
        self.optimisers = build_optimisers(model, training.optimiser, training.lr)

    def step(self, batch: Examples, factor: float) -> tuple[float, float]:
        batch = batch.to(self._device)
        if not self._model.training:
            self._model.train()
        with self._precision():
            logits = self._model(*batch.inputs)
        logits = logits.float()
        loss = cross_entropy(logits, batch.targets, smoothing=self._training.smoothing)
        loss.backward()  # type: ignore[no-untyped-call]
        if self._training.clip:
            nn.utils.clip_grad_norm_(self._weights, self._training.clip)
        self.optimisers.step(factor)
        hits = right(logits.detach(), batch.targets).reshape(len(batch), -1).all(dim=1)
        if self._training.smoothing:  # told as validation losses are, without it
            loss = cross_entropy(logits.detach(), batch.targets)
        return loss.item(), hits.float().mean().item()

    def _precision(self) -> AbstractContextManager[object]:
        """Products in bfloat16 where they are asked for (Micikevicius et al., 2018; no loss scaling)."""
        return torch.autocast(self._device.type, torch.bfloat16) if self._half else nullcontext()

    def measure(self, model: Model, examples: Examples) -> Measured:
        return measure(model, examples, smoothing=self._training.smoothing)

    def tensors(self) -> dict[str, Tensor]:
        return self.optimisers.tensors()

    def restore(self, tensors: dict[str, Tensor]) -> None:
        self.optimisers.restore(tensors)


def has_half_products(training: Training, device: torch.device) -> bool:
    """Whether steps multiply in bfloat16: as asked, or where ``device`` has instructions for it."""
    if training.precision == "auto":
        return has_fast_bfloat16(device)
    return training.precision == "bfloat16"


def build_engine(model: Model, spec: Spec) -> Engine:
    match spec.engine:
        case "torch":
            return TorchEngine(model, spec.training)
        case "explicit":
            return ExplicitEngine(model, spec.training)


@final
class ExplicitEngine:
    """Gradients by hand, on the memory of torch's parameters; plain SGD."""

    def __init__(self, model: Model, training: Training) -> None:
        from attnlab.explicit import Network  # here: Numba is slow to import, few need it

        self._build = Network
        self._arrays = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
        self._training = training
        self._threads = 0
        self._use_threads()

    def step(self, batch: Examples, factor: float) -> tuple[float, float]:
        self._use_threads()
        loss, hits = self._network.step(
            batch.inputs[0].numpy(), batch.targets.numpy(), self._training.lr * factor
        )
        return loss, hits / len(batch)

    def measure(self, model: Model, examples: Examples) -> Measured:
        logits = torch.from_numpy(self._network.logits(examples.inputs[0].numpy()))
        return compare(logits, examples.targets)

    def tensors(self) -> dict[str, Tensor]:
        return {}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Plain SGD remembers nothing."""

    def _use_threads(self) -> None:
        """As many threads as torch has been told to use."""
        if self._threads != torch.get_num_threads():
            self._threads = torch.get_num_threads()
            self._network = self._build(self._arrays, threads=self._threads)
