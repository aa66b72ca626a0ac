"""What stands in for the task of a wrapped model, which comes with examples alone."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from attnlab.sets import Examples, Shown, Splits
from attnlab.specs import Task


@final
@dataclass(frozen=True, kw_only=True)
class PlainTask(Task):
    """Examples without a task: answers are numbers, and so are tokens of the input."""

    kind: ClassVar[str] = "examples"
    data: Examples
    classes: int
    names: tuple[str, ...] = ()
    """Of the classes, if they have any."""

    @property
    def vocabulary(self) -> int:
        return self.classes

    @property
    def target_length(self) -> int:
        return self.data.targets[0].numel()

    def splits(self, seed: int) -> Splits:
        """All of them, whatever the split."""
        return Splits(self.data, self.data, self.data)

    def answer(self, tokens: Tensor) -> str:
        return " ".join(self.symbols(tokens.reshape(-1)))

    def symbols(self, tokens: Tensor) -> list[str]:
        return [self.names[each] if self.names else str(each) for each in tokens.tolist()]

    def labels(self) -> list[str]:
        return self.symbols(torch.arange(self.classes))

    def places(self) -> list[str]:
        if self.data.targets.dim() == 1:
            return ["class"]
        return [str(place + 1) for place in range(self.target_length)]

    def strata(self, examples: Examples) -> dict[str, Tensor]:
        """By class; sequences have none."""
        return {} if examples.targets.dim() > 1 else super().strata(examples)

    def show(self, example: Examples) -> Shown:
        """Whole numbers as they are, vectors by their place."""
        first = example.inputs[0][0]
        if first.dim() == 1 and not first.is_floating_point():
            labels = [str(each) for each in first.tolist()]
        else:
            labels = [str(place + 1) for place in range(len(first) if first.dim() else 1)]
        return Shown(" ".join(labels), labels, self.answer(example.targets.flatten()))
