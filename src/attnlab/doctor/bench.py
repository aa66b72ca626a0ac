"""Where experiments are done: short trainings from fresh weights, within a budget of seconds.

A training is a function of its spec, its examples and its number of steps, which is one of a few; so the
same number of steps gives the same losses, however fast the machine is. The clock is asked between steps.
Nothing of a run is touched.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import fmean
from typing import final

import torch
from torch import Tensor

from attnlab.devices import find_device, place
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.sets import Examples
from attnlab.specs import Spec
from attnlab.training.engines import build_engine

STEPS = (20, 40, 80, 160, 320, 640, 1280, 2560)
"""How long a short training may be."""
TIMED = 4
"""Steps that are taken to see how long one takes."""

Clock = Callable[[], float]
Build = Callable[[Spec], Model]


class OverError(LabError):
    """The budget is used up."""


@final
@dataclass(frozen=True)
class Course:
    """The loss of each step of a short training; infinite from where it diverged."""

    losses: list[float]
    exact: list[float]
    model: Model | None = field(default=None, compare=False, repr=False)
    """As it was at the end; None if the training diverged."""

    @property
    def start(self) -> float:
        return fmean(self.losses[: self._width])

    @property
    def end(self) -> float:
        """The mean of the last tenth."""
        return fmean(self.losses[-self._width :])

    @property
    def _width(self) -> int:
        return max(4, len(self.losses) // 10)


@final
class Bench:
    """``budget`` seconds for experiments with the models that ``build`` makes of specs."""

    def __init__(
        self,
        build: Build,
        budget: float,
        *,
        clock: Clock = time.monotonic,
        progress: Progress = silent,
    ) -> None:
        self.budget = budget
        self._build = build
        self._clock = clock
        self._progress = progress
        self._began: float | None = None
        self._paces = dict[int, float]()  # by the size of the batch

    @property
    def gone(self) -> float:
        """Seconds since the first experiment began."""
        if self._began is None:
            self._began = self._clock()
        return self._clock() - self._began

    @property
    def left(self) -> float:
        return max(0.0, self.budget - self.gone)

    def steps(self, spec: Spec, examples: Examples, share: float, trainings: int) -> int:
        """How many steps each of some trainings can have, with a share of what is left."""
        possible = share * self.left / (trainings * self._seconds(spec, examples))
        found = max((each for each in STEPS if each <= possible), default=0)
        if not found:
            raise OverError(
                f"what is left of the budget allows {int(possible)} steps a training, and {STEPS[0]} are "
                "needed"
            )
        return found

    def _seconds(self, spec: Spec, examples: Examples) -> float:
        """That a step takes, begun with a training of a few."""
        size = min(spec.training.batch, len(examples))
        if size not in self._paces:
            self.train(spec, examples, TIMED)  # the first steps of a process are slow
            before = self.gone
            self.train(spec, examples, TIMED)
            self._paces[size] = max((self.gone - before) / TIMED, 1e-6)
        return self._paces[size]

    def train(
        self,
        spec: Spec,
        examples: Examples,
        steps: int,
        *,
        enough: Callable[[float, float], bool] = lambda loss, exact: False,
    ) -> Course:
        """Train fresh weights for ``steps``, or until loss and accuracy of a batch are ``enough``."""
        torch.manual_seed(spec.seed)
        model = place(self._build(spec), find_device(spec.training.device))
        engine = build_engine(model, spec)
        losses, exact = list[float](), list[float]()
        for number, rows in enumerate(_batches(len(examples), spec, steps)):
            self._check()
            factor = min(1.0, (number + 1) / max(1, steps // 20))  # the same warm-up for every rate
            loss, right = engine.step(examples[rows], factor)
            if not math.isfinite(loss):
                return Course(
                    [*losses, *[math.inf] * (steps - number)], [*exact, *[0.0] * (steps - number)]
                )
            losses.append(loss)
            exact.append(right)
            if enough(loss, right):
                break
        return Course(losses, exact, model)

    def _check(self) -> None:
        gone = self.gone
        if gone >= self.budget:
            raise OverError(f"the budget of {self.budget:g} s ended while it was tried")
        self._progress(int(gone), max(1, math.ceil(self.budget)))


def _batches(count: int, spec: Spec, steps: int) -> Iterator[Tensor]:
    """Rows of each step's batch: the examples in an order of the seed, again and again."""
    generator = torch.Generator().manual_seed(spec.seed)
    size, order, at = min(spec.training.batch, count), torch.empty(0, dtype=torch.long), 0
    for _ in range(steps):
        if at + size > len(order):
            order, at = torch.randperm(count, generator=generator), 0
        yield order[at : at + size]
        at += size
