"""What is kept of a loop of somebody's own: windows of steps, evaluations, a call of the model."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, final

import torch
from torch import Tensor

from attnlab.runs.records import EpochRecord, Metrics, StepRecord
from attnlab.sets import Examples
from attnlab.training.counting import by_class

WINDOWS = 200
"""Of steps in a training of known length; of any other there are up to twice as many."""
EVALUATIONS = 256
KEPT, KEPT_NUMBERS = 200, 2**22
"""Examples of calls that are kept, and the numbers that they hold at most."""


def exact_match(logits: Any, targets: Any, rows: int | None) -> float | None:
    """The share of examples whose classes or tokens are all right; None where there are no classes."""
    if not isinstance(logits, Tensor) or not isinstance(targets, Tensor) or targets.is_floating_point():
        return None
    pair = by_class(logits.detach(), targets, rows)
    if pair is None:
        return None
    said, wanted = pair[0].argmax(dim=-1), pair[1]
    return ((said == wanted) | (wanted < 0)).all(dim=1).double().mean().item()


@final
@dataclass(frozen=True)
class Call:
    """One call of the model: its tensors, and their names where it is called by name."""

    inputs: tuple[Tensor, ...]
    names: tuple[str, ...] = ()
    targets: Tensor | None = None
    training: bool = True

    @classmethod
    def of(
        cls, given: tuple[Any, ...], named: Mapping[str, Any], labels: tuple[str, ...], *, training: bool
    ) -> "Call":
        """Tensors that a module is called with; one that is given a dictionary is given its values."""
        whole = given[0] if len(given) == 1 and isinstance(given[0], Mapping) else {}
        ordered = [each for each in given if isinstance(each, Tensor)]
        values = {
            name: each
            for name, each in {**whole, **named}.items()
            if name not in labels and isinstance(each, Tensor)
        }
        return cls((*ordered, *values.values()), () if ordered else tuple(values), training=training)

    @property
    def rows(self) -> int | None:
        """Examples, which lie along the first axis."""
        return self.inputs[0].shape[0] if self.inputs and self.inputs[0].dim() else None

    def kept(self, targets: Tensor, *, training: bool) -> "Call":
        """A few examples of it, copied."""
        rows = self.rows or 0
        if targets.dim() == 1 and targets.numel() > rows > 0 == targets.numel() % rows:
            targets = targets.reshape(rows, -1)
        parts = [each for each in (*self.inputs, targets) if each.dim()]
        size = max(1, sum(each[:1].numel() for each in parts))
        most = max(2, min(KEPT, KEPT_NUMBERS // size))
        *inputs, wanted = (each[:most].detach().cpu().clone() for each in parts)
        return Call(tuple(inputs), self.names, wanted, training)

    def joined(self, other: "Call", targets: Tensor) -> "Call":
        """With examples of another call behind its own, as long as there is room."""
        if self.targets is None or len(self.targets) >= KEPT:
            return self
        added = other.kept(targets, training=self.training)
        assert added.targets is not None
        mine, yours = (*self.inputs, self.targets), (*added.inputs, added.targets)
        numbers = sum(each.numel() for each in (*mine, *yours))
        if [x.shape[1:] for x in mine] != [x.shape[1:] for x in yours] or numbers > KEPT_NUMBERS:
            return self
        *inputs, wanted = (torch.cat(pair)[:KEPT] for pair in zip(mine, yours, strict=True))
        return Call(tuple(inputs), self.names, wanted, self.training)

    def examples(self) -> Examples | None:
        """None where inputs and targets are not example by example."""
        if self.targets is None or not self.inputs:
            return None
        if self.targets.is_floating_point() or any(len(x) != len(self.targets) for x in self.inputs):
            return None
        return Examples(self.inputs, self.targets)


@final
@dataclass
class _Sum:
    """Losses and accuracies of some calls, by examples."""

    count: int = 0
    loss: Tensor | float = 0.0
    right: float = 0.0
    judged: int = 0

    def add(self, loss: Tensor, right: float | None, rows: int) -> None:
        self.count += rows
        self.loss = self.loss + loss.float().mean() * rows
        if right is not None:
            self.right, self.judged = self.right + right * rows, self.judged + rows


@final
@dataclass
class LoopLog:
    """What a run would have logged."""

    total: int | None = None
    steps: list[StepRecord] = field(default_factory=list)
    epochs: list[EpochRecord] = field(default_factory=list)
    choices: int = 0
    """How many classes or tokens an answer can be; 0 if that is not known."""

    def __post_init__(self) -> None:
        self._width = 1 if self.total is None else max(1, -(-self.total // WINDOWS))
        self._losses, self._rights = list[float](), list[float]()
        self._since = list[float]()  # means of windows since the last evaluation
        self._evaluation = _Sum()
        self._evaluations, self._every = 0, 1
        self._began = time.perf_counter()

    def due(self, step: int) -> bool:
        """Whether accuracy is measured at a step: at a quarter of them, or four times in each window."""
        return step % max(4, self._width // 4) == 0

    def right(self, share: float | None) -> None:
        if share is not None:
            self._rights.append(share)

    def stepped(self, step: int, rate: float, loss: float | None) -> None:
        if loss is not None and math.isfinite(loss):
            self._losses.append(loss)
        if step % self._width or not self._losses:
            return
        known = self._rights or [self.steps[-1].exact_match if self.steps else 0.0]
        record = StepRecord(
            step, float(self._evaluations), rate, fmean(self._losses), fmean(known), self._seconds
        )
        self._since.append(record.loss)
        self._losses.clear()
        self._rights.clear()
        self.steps.append(record)
        if len(self.steps) >= 2 * WINDOWS:
            self._halve()

    def _halve(self) -> None:
        self._width *= 2
        pairs = zip(self.steps[::2], self.steps[1::2], strict=False)
        self.steps = [
            StepRecord(
                b.step,
                b.epoch,
                b.lr,
                (a.loss + b.loss) / 2,
                (a.exact_match + b.exact_match) / 2,
                b.seconds,
            )
            for a, b in pairs
        ]

    def evaluated(self, loss: Tensor, logits: Any, targets: Any, rows: int | None) -> None:
        """A part of an evaluation."""
        self._evaluation.add(loss, exact_match(logits, targets, rows), rows or 1)

    def end_evaluation(self, step: int) -> None:
        """The model goes on to learn."""
        found, self._evaluation = self._evaluation, _Sum()
        if not found.count:
            return
        self._evaluations += 1
        if self._evaluations % self._every:
            return
        loss = float(found.loss) / found.count
        right = found.right / found.judged if found.judged else 0.0
        lowest = min((each.valid_loss for each in self.epochs), default=float("inf"))
        trained = fmean(self._since) if self._since else loss
        self._since.clear()
        seconds = self._seconds
        self.epochs.append(
            EpochRecord(self._evaluations, step, trained, loss, right, right, seconds, best=loss < lowest)
        )
        if len(self.epochs) >= EVALUATIONS:
            self._every *= 2
            self.epochs = self.epochs[1::2]

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._began

    def metrics(self) -> Metrics:
        """The same as a run's."""
        return Metrics(lines=[*self.steps, *self.epochs])
