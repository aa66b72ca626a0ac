"""Examples as tensors in memory: what a model is given, and what it should answer."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class Examples:
    """``model(*inputs)`` gives logits (N, ..., V) for ``targets`` (N, ...).

    An example is right as a whole when every one of its targets has the highest logit.
    """

    inputs: tuple[Tensor, ...]
    targets: Int[Tensor, "N *T"]

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: Tensor | slice) -> "Examples":
        return Examples(tuple(part[index] for part in self.inputs), self.targets[index])


@dataclass(frozen=True)
class Splits:
    """Sets of examples apart from each other: to learn from, to choose by, and to report once.

    ``renewed`` gives each epoch training examples of its own, as many as there are in ``train``; None goes
    through the same ones again.
    """

    train: Examples
    valid: Examples
    test: Examples
    renewed: Callable[[int], Examples] | None = None
