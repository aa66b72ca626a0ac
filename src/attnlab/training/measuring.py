"""Loss and accuracy of a model on a set of examples."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlab.devices import device_of
from attnlab.model import Model
from attnlab.sets import Examples


@dataclass(frozen=True)
class Measured:
    """Mean cross-entropy a target, share of targets right, share of examples wholly right."""

    loss: float
    token_accuracy: float
    exact_match: float
    smoothed: float | None = None
    """The loss with smoothed labels, where a training has them."""

    @property
    def objective(self) -> float:
        """The loss that a training lowers: whether a model became better is judged by it alone.

        Smoothed labels ask for a chance of 1 - s (1 - 1/V) at most. A model that follows them pays
        about -log(1 - s) of plain cross-entropy on every example that it gets right, so that plain
        losses rise in the end while ever more answers are right.
        """
        return self.loss if self.smoothed is None else self.smoothed


def cross_entropy(logits: Tensor, targets: Tensor, *, smoothing: float = 0.0) -> Float[Tensor, ""]:
    """Mean over every target: no digit is left out."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), label_smoothing=smoothing)


def right(logits: Tensor, targets: Tensor) -> Bool[Tensor, "B *T"]:
    """Where the highest logit is the target's."""
    return logits.argmax(dim=-1) == targets


@torch.inference_mode()
def measure(
    model: Model,
    examples: Examples,
    *,
    batch: int = 512,
    smoothing: float = 0.0,
    temperature: float = 1.0,
) -> Measured:
    """Measure ``model`` as it stands, in evaluation mode, and leave its mode as it was. Losses are those of
    logits divided by ``temperature``.
    """
    was_training, device = model.training, device_of(model)
    model.eval()
    loss, smoothed, tokens, exact = 0.0, 0.0, 0, 0
    for start in range(0, len(examples), batch):
        part = examples[slice(start, start + batch)].to(device)
        logits = model(*part.inputs) / temperature
        hits = right(logits, part.targets).reshape(len(part), -1)
        loss += cross_entropy(logits, part.targets).item() * len(part)
        if smoothing:
            smoothed += cross_entropy(logits, part.targets, smoothing=smoothing).item() * len(part)
        tokens += int(hits.sum())
        exact += int(hits.all(dim=1).sum())
    model.train(was_training)
    count = len(examples)
    return Measured(
        loss / count,
        tokens / examples.targets.numel(),
        exact / count,
        smoothed / count if smoothing else None,
    )


@torch.inference_mode()
def compare(logits: Float[Tensor, "N *T V"], targets: Int[Tensor, "N *T"]) -> Measured:
    """Measure given answers."""
    hits = right(logits, targets).reshape(len(targets), -1)
    return Measured(
        cross_entropy(logits, targets).item(),
        hits.double().mean().item(),
        hits.all(dim=1).double().mean().item(),
    )
