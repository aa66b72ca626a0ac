"""Training specs: optimiser, schedule, and how long."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

from attnlab.spec.codec import later
from attnlab.spec.rules import require

MOST_SNAPSHOTS = 1000
"""Snapshots that a run may keep."""


@dataclass(frozen=True, kw_only=True)
class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019); without decay it is Adam."""

    kind: ClassVar[str] = "adamw"
    beta1: float = 0.9
    beta2: float = 0.999
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check_fractions(self, "beta1", "beta2")
        require(self.weight_decay >= 0, "training.optimiser.weight_decay", self.weight_decay, "at least 0")


@dataclass(frozen=True, kw_only=True)
class SGD:
    """Stochastic gradient descent."""

    kind: ClassVar[str] = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check_fractions(self, "momentum")
        require(self.weight_decay >= 0, "training.optimiser.weight_decay", self.weight_decay, "at least 0")


@dataclass(frozen=True, kw_only=True)
class Muon:
    """Orthogonalised momentum for hidden matrices (Jordan et al., 2024), AdamW for all else.

    Updates are scaled to AdamW's size (Liu et al., 2025), so that one learning rate serves both;
    ``rest`` multiplies it for what AdamW trains.
    """

    kind: ClassVar[str] = "muon"
    momentum: float = 0.95
    weight_decay: float = 0.0
    rest: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.99

    def __post_init__(self) -> None:
        _check_fractions(self, "momentum", "beta1", "beta2")
        require(self.weight_decay >= 0, "training.optimiser.weight_decay", self.weight_decay, "at least 0")
        require(self.rest > 0, "training.optimiser.rest", self.rest, "above 0")


def _check_fractions(spec: object, *names: str) -> None:
    for name in names:
        value = getattr(spec, name)
        require(0 <= value < 1, f"training.optimiser.{name}", value, "at least 0 and below 1")


OptimiserSpec = AdamW | SGD | Muon


@dataclass(frozen=True, kw_only=True)
class Constant:
    """The learning rate as it is, after a linear warm-up over a share of all steps."""

    kind: ClassVar[str] = "constant"
    warmup: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.warmup < 1, "training.schedule.warmup", self.warmup, "at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class Cosine:
    """Linear warm-up over a share of all steps, then half a cosine down to ``floor``."""

    kind: ClassVar[str] = "cosine"
    warmup: float = 0.05
    floor: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.warmup < 1, "training.schedule.warmup", self.warmup, "at least 0 and below 1")
        require(0 <= self.floor <= 1, "training.schedule.floor", self.floor, "from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class OneCycle:
    """Cosine up from ``start`` to the peak at a share of all steps, cosine down to 0 (Smith, 2018)."""

    kind: ClassVar[str] = "onecycle"
    peak: float = 0.3
    start: float = 0.04

    def __post_init__(self) -> None:
        require(0 < self.peak < 1, "training.schedule.peak", self.peak, "above 0 and below 1")
        require(0 <= self.start <= 1, "training.schedule.start", self.start, "from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class Plateau:
    """Multiply by ``factor`` whenever more than ``patience`` epochs brought no lower validation loss."""

    kind: ClassVar[str] = "plateau"
    factor: float = 0.5
    patience: int = 5

    def __post_init__(self) -> None:
        require(0 < self.factor < 1, "training.schedule.factor", self.factor, "above 0 and below 1")
        require(self.patience >= 1, "training.schedule.patience", self.patience, "at least 1")


ScheduleSpec = Constant | Cosine | OneCycle | Plateau


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a model is trained."""

    epochs: int = 20
    """Passes over the training data."""
    batch: int = 128
    lr: float = 1e-3
    """Peak learning rate."""
    optimiser: OptimiserSpec = AdamW()
    schedule: ScheduleSpec = OneCycle()
    clip: float = 1.0
    """Largest norm of the gradient; 0 switches clipping off."""
    ema: float = 0.0
    """Decay of the running average of weights that is evaluated and kept; 0 switches it off."""
    smoothing: float = 0.0
    """Label smoothing (Szegedy et al., 2016)."""
    patience: int = 0
    """Epochs without a lower validation loss, as it is trained, before training stops; 0 never stops."""
    threads: int = 0
    """Threads of torch; 0 chooses by a short measurement, once for each machine and model shape."""
    watch: Literal["valid", "test"] = later("valid")
    """``test``: log the accuracy on test examples after each epoch too; nothing is chosen by it."""
    steps: int = later(0)
    """End after so many steps, although epochs are left; 0 goes through all epochs."""
    precision: Literal["float32", "bfloat16", "auto"] = later("float32")
    """``bfloat16``: products of a step in half the bits, which some processors compute twice as fast and
    others many times slower; ``auto``: only where they are fast. Weights, their updates and all measuring
    stay in 32 bits."""
    perfect: int = later(0)
    """Epochs in a row with every validation example right, before training stops; 0 never stops."""
    snapshots: tuple[int, ...] = later(())
    """Keep weights on the way, for 'attnlab timelapse'. One number: so many, at steps evenly spaced in
    their logarithm. Several: these steps, of which 0 is the start. The end is always kept."""

    def __post_init__(self) -> None:
        require(self.epochs >= 0, "training.epochs", self.epochs, "at least 0")
        require(self.steps >= 0, "training.steps", self.steps, "at least 0")
        require(self.batch >= 1, "training.batch", self.batch, "at least 1")
        require(0 < self.lr < math.inf, "training.lr", self.lr, "above 0 and finite")
        require(self.clip >= 0, "training.clip", self.clip, "at least 0")
        require(0 <= self.ema < 1, "training.ema", self.ema, "at least 0 and below 1")
        require(0 <= self.smoothing < 1, "training.smoothing", self.smoothing, "at least 0 and below 1")
        require(self.patience >= 0, "training.patience", self.patience, "at least 0")
        require(self.perfect >= 0, "training.perfect", self.perfect, "at least 0")
        require(self.threads >= 0, "training.threads", self.threads, "at least 0")
        self._check_snapshots()

    def _check_snapshots(self) -> None:
        """How many, or which steps."""
        if len(self.snapshots) == 1:
            (count,) = self.snapshots
            rule = f"from 2 to {MOST_SNAPSHOTS}, or several steps such as 0 100 1000"
            require(2 <= count <= MOST_SNAPSHOTS, "training.snapshots", count, rule)
        rising = all(a < b for a, b in pairwise((-1, *self.snapshots)))
        rule = "steps from 0 on, each above the one before"
        require(rising, "training.snapshots", self.snapshots, rule)
        rule = f"at most {MOST_SNAPSHOTS} steps"
        require(len(self.snapshots) <= MOST_SNAPSHOTS, "training.snapshots", self.snapshots, rule)
