"""Are the gradients that were written by hand the right ones? Two witnesses, tensor by tensor.

- autograd, in float32, on the same weights and images;
- central differences of the hand-written loss itself, in float64: (L(w + h) - L(w - h)) / 2h.

Differences are told relative to the tensor's largest gradient: max |a - b| / max |b|. A gradient that is
zero by nature, such as that of the keys' bias, which shifts all scores of a row alike, is compared on the
scale of the largest gradient of all. A weight whose step carries an activation across the kink of a ReLU
has no derivative to compare with: there the differences to the left and to the right disagree, and the
weight is left out and counted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.explicit import Network
from attnlab.explicit.arrays import NAMES
from attnlab.model import Model
from attnlab.models import build_model
from attnlab.models.build import MNIST
from attnlab.results import Result, Row, plain_fields
from attnlab.specs import PatchAttentionModel
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
    """A row for each tensor; ``passes`` if all differences are below their limits."""

    shown_by: ClassVar[str] = "attnlab.tables.gradients"

    passes: bool
    tensors: list[TensorCheck]

    def records(self) -> list[Row]:
        """A row for each tensor."""
        return [plain_fields(each) for each in self.tensors]


def check_gradients(
    spec: PatchAttentionModel, *, batch: int, seed: int = 0, entries: int = 200, threads: int = 1
) -> GradientCheck:
    """A row a tensor; at most ``entries`` weights of each are moved for the central differences."""
    torch.manual_seed(seed)
    model = build_model(spec, vocabulary=CLASSES)
    images = (torch.rand(batch, *MNIST[1:]) - 0.5).relu() * 2  # half of the pixels are empty, as in MNIST
    labels = torch.randint(CLASSES, (batch,))
    cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
    autograd = {
        name: each.grad.numpy().copy() for name, each in model.named_parameters() if each.grad is not None
    }
    _, _, by_hand = _network(model, threads)[0].gradients(images.numpy(), labels.numpy())
    network, weights = _network(model.double(), threads)
    given = images.double().numpy(), labels.numpy()
    _, _, precise = network.gradients(*given)
    fields = {name: field for field, name in NAMES.items()}
    largest = {name: float(np.abs(gradient).max()) for name, gradient in autograd.items()}
    most = max(largest.values())
    rows = []
    for name, gradient in autograd.items():
        scale = largest[name] if largest[name] > VANISHING * most else most
        chosen = np.random.default_rng(seed).permutation(gradient.size)[:entries]
        own = np.array(getattr(precise, fields[name])).ravel()
        flat = weights[name].reshape(-1)
        worst, kinks = _central(lambda: network.gradients(*given)[0], flat, own, chosen.tolist(), scale)
        rows.append(
            TensorCheck(
                tensor=name,
                shape=list(gradient.shape),
                autograd=float(np.abs(getattr(by_hand, fields[name]) - gradient).max()) / scale,
                central=worst,
                moved=len(chosen),
                kinks=kinks,
            )
        )
    return GradientCheck(
        passes=all(row.autograd <= AUTOGRAD_LIMIT and row.central <= CENTRAL_LIMIT for row in rows),
        tensors=rows,
    )


def _network(model: Model, threads: int) -> tuple[Network, dict[str, Array]]:
    """The hand-written network of a model, on the memory of its weights."""
    weights = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
    return Network(weights, threads=threads), weights


def _central(
    loss: Callable[[], float], weights: Array, gradient: Array, chosen: list[int], scale: float
) -> tuple[float, int]:
    """The largest difference to central ones, as a share of ``scale``, and how many were left out."""
    worst, kinks = 0.0, 0
    for place in chosen:
        middle, losses = float(weights[place]), []
        for shift in (STEP, -STEP, 0.0):
            weights[place] = middle + shift
            losses.append(loss())
        above, below, here = losses
        right, left = (above - here) / STEP, (here - below) / STEP
        if abs(right - left) > KINK * scale:
            kinks += 1
        else:
            worst = max(worst, abs((above - below) / (2 * STEP) - float(gradient[place])))
    return worst / scale, kinks
