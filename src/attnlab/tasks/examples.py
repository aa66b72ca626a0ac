"""Examples as tensors in memory: what a model is given, and what it should answer."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from attnlab.tasks.choices import Split as Split


@dataclass(frozen=True)
class Examples:
    """``model(*inputs)`` gives logits (N, ..., V) for ``targets`` (N, ...).

    An example is right as a whole when every one of its targets has the highest logit. Inputs that would
    take too much memory are made each time they are asked for: ``made`` of what is ``kept``.
    """

    kept: tuple[Tensor, ...]
    targets: Int[Tensor, "N *T"]
    made: Callable[..., tuple[Tensor, ...]] | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the model is given; take a part of the examples first, where all are not needed."""
        return self.kept if self.made is None else self.made(*self.kept)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: Tensor | slice) -> "Examples":
        return Examples(tuple(part[index] for part in self.kept), self.targets[index], self.made)


@dataclass(frozen=True)
class Splits:
    """Sets of examples apart from each other: to learn from, to choose by, and to report once.

    ``renewed`` gives each epoch training examples of its own, as many as there are in ``train``; None goes
    through the same ones again. ``altered`` is what the model gets of a batch of them at a step, by the
    step's number; None: the batch as it is.
    """

    train: Examples
    valid: Examples
    test: Examples
    renewed: Callable[[int], Examples] | None = None
    altered: Callable[[Examples, int], Examples] | None = None
