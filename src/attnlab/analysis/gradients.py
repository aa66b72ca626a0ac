"""Are the gradients that were written by hand the right ones? Two witnesses, tensor by tensor.

- autograd, in float32, on the same weights and images;
- central differences of the hand-written loss itself, in float64: (L(w + h) - L(w - h)) / 2h.

Differences are told relative to the tensor's largest gradient: max |a - b| / max |b|. A gradient that is
zero by nature, such as that of the keys' bias, which shifts all scores of a row alike, is compared on the
scale of the largest gradient of all. A weight whose step carries an activation across the kink of a ReLU
has no derivative to compare with: there the differences to the left and to the right disagree, and the
weight is left out and counted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.explicit import Network
from attnlab.explicit.arrays import NAMES
from attnlab.model import Model
from attnlab.models import build_model
from attnlab.models.build import MNIST
from attnlab.results import Result
from attnlab.spec import PatchAttentionModel
from attnlab.training.measuring import cross_entropy

CLASSES = 10
STEP = 1e-5
VANISHING = 1e-6  # a tensor's largest gradient as a share of the largest of all
KINK = 1e-3  # left and right differences that disagree by this share of the largest gradient
AUTOGRAD_LIMIT, CENTRAL_LIMIT = 1e-5, 1e-7

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class TensorCheck:
    """How far one gradient is from both witnesses; of ``moved`` weights ``kinks`` are left out."""

    tensor: str
    shape: list[int]
    autograd: float
    central: float
    moved: int
    kinks: int


@dataclass(frozen=True, kw_only=True)
class GradientCheck(Result):
    passes: bool
    tensors: list[TensorCheck]


def check_gradients(
    spec: PatchAttentionModel, *, batch: int, seed: int = 0, entries: int = 200, threads: int = 1
) -> GradientCheck:
    """A row a tensor; at most ``entries`` weights of each are moved for the central differences."""
    torch.manual_seed(seed)
    model = build_model(spec, vocabulary=CLASSES)
    images = (torch.rand(batch, *MNIST[1:]) - 0.5).relu() * 2  # half of the pixels are empty, as in MNIST
    labels = torch.randint(CLASSES, (batch,))
    by_hand = _gradients(_network(model, threads), images, labels)
    autograd = _autograd(model, images, labels)
    scales = _scales(autograd)
    precise = _network(model.double(), threads)
    rows = []
    for name, gradient in autograd.items():
        worst, moved, kinks = _central(
            precise, model, name, scales[name], images.double(), labels, entries, seed
        )
        rows.append(
            TensorCheck(
                tensor=name,
                shape=list(gradient.shape),
                autograd=float(np.abs(by_hand[name] - gradient).max()) / scales[name],
                central=worst,
                moved=moved,
                kinks=kinks,
            )
        )
    return GradientCheck(
        passes=all(row.autograd <= AUTOGRAD_LIMIT and row.central <= CENTRAL_LIMIT for row in rows),
        tensors=rows,
    )


def _network(model: Model, threads: int) -> Network:
    arrays = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
    return Network(arrays, threads=threads)


def _gradients(network: Network, images: torch.Tensor, labels: torch.Tensor) -> dict[str, Array]:
    _, _, found = network.gradients(images.numpy(), labels.numpy())
    return {name: np.array(getattr(found, field)) for field, name in NAMES.items()}


def _autograd(model: Model, images: torch.Tensor, labels: torch.Tensor) -> dict[str, Array]:
    model.zero_grad()
    cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
    return {
        name: parameter.grad.numpy().copy()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def _scales(gradients: dict[str, Array]) -> dict[str, float]:
    """What each tensor's differences are relative to."""
    largest = {name: float(np.abs(gradient).max()) for name, gradient in gradients.items()}
    most = max(largest.values())
    return {name: own if own > VANISHING * most else most for name, own in largest.items()}


def _central(
    network: Network,
    model: Model,
    name: str,
    scale: float,
    images: torch.Tensor,
    labels: torch.Tensor,
    entries: int,
    seed: int,
) -> tuple[float, int, int]:
    """The largest difference, of how many weights, and how many were left out."""
    gradient = _gradients(network, images, labels)[name].ravel()
    weights = dict(model.named_parameters())[name].detach().numpy().reshape(-1)
    chosen = np.random.default_rng(seed).permutation(weights.size)[:entries]

    def loss(place: int, value: float) -> float:
        weights[place] = value
        return network.gradients(images.numpy(), labels.numpy())[0]

    worst, kinks = 0.0, 0
    for place in chosen.tolist():
        middle = float(weights[place])
        above, below, here = (loss(place, middle + shift) for shift in (STEP, -STEP, 0.0))
        right, left = (above - here) / STEP, (here - below) / STEP
        if abs(right - left) > KINK * scale:
            kinks += 1
        else:
            worst = max(worst, abs((above - below) / (2 * STEP) - float(gradient[place])))
    return worst / scale, len(chosen), kinks
