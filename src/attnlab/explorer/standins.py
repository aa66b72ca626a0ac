"""What takes the place of outputs that are switched off, and of those that are swapped.

    zero      0
    mean      the mean over training examples at each place, as ``ablate`` takes it
    resample  the value for one other example: the first training example, or where inputs differ in length
              the first validation example of the same length

A place beyond those that are known takes the last of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnlab.analysis.ablate.baselines import means_at, recorded_at
from attnlab.explorer.edits import Parts, StandInName, Values
from attnlab.explorer.kept import Kept
from attnlab.explorer.tasks import Inputs
from attnlab.sets import Examples


@contextmanager
def plain_tensors() -> Iterator[None]:
    """Tensors made meanwhile have no gradients but may be used where there are some, as those of an answer
    may not.
    """
    with torch.inference_mode(False), torch.no_grad():
        yield


@dataclass(frozen=True)
class StandInValues:
    """Those of a model, which its copies share: ``known`` keeps them by name and length."""

    inputs: Inputs
    parts: Parts
    known: Kept[tuple[StandInName, int]] = field(default_factory=Kept)

    def get(self, name: StandInName, length: int) -> Values:
        """Values for an input of so many tokens, by the names of taps."""
        key = (name, length if name == "resample" and self.inputs.padded else 0)
        return self.known.get(key, lambda: self._make(name, length))

    def knows(self, name: StandInName) -> bool:
        """Whether values of any length are there."""
        return any(known == name for known, _ in self.known.asked())

    @plain_tensors()
    def _make(self, name: StandInName, length: int) -> Values:
        taps = self.parts.outputs()
        match name:
            case "zero":
                seen = self._recorded(self.inputs.single("valid", 0))
                return {tap: torch.zeros_like(value[..., :1, :]) for tap, value in seen.items()}
            case "mean":
                return means_at(self.inputs.model, self.inputs.training, taps)
            case "resample":
                return self._recorded(self.other(length))

    def other(self, length: int) -> Examples:
        """The one example that stands for any other: as long, or else with the nearest length."""
        lengths = self.inputs.lengths("valid")
        if lengths is None:
            return self.inputs.training[slice(0, 1)]
        return self.inputs.single("valid", int((lengths - length).abs().argmin()))

    def _recorded(self, example: Examples) -> dict[str, Tensor]:
        like = next(self.inputs.model.parameters())
        return recorded_at(self.inputs.model, example.to(like.device), self.parts.outputs())
