"""Training specs: optimiser, schedule, and how long."""

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from attnlab.devices import CPU
from attnlab.specs.codec import later
from attnlab.specs.rules import (
    BelowOne,
    Checked,
    Inside,
    Natural,
    NotNegative,
    Positive,
    Rule,
    Share,
    require,
    up_to,
)

MOST_THREADS = 1024
"""Far more make torch's libraries fail."""
MOST_SNAPSHOTS = 1000
"""Snapshots that a run may keep."""


@dataclass(frozen=True, kw_only=True)
class AdamW(Checked, path="training.optimiser.", kind="adamw"):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019); without decay it is Adam."""

    beta1: BelowOne = 0.9
    beta2: BelowOne = 0.999
    weight_decay: NotNegative = 0.0


@dataclass(frozen=True, kw_only=True)
class SGD(Checked, path="training.optimiser.", kind="sgd"):
    """Stochastic gradient descent."""

    momentum: BelowOne = 0.0
    weight_decay: NotNegative = 0.0


@dataclass(frozen=True, kw_only=True)
class Muon(Checked, path="training.optimiser.", kind="muon"):
    """Orthogonalised momentum for hidden matrices (Jordan et al., 2024), AdamW for all else.

    Updates are scaled to AdamW's size (Liu et al., 2025), so that one learning rate serves both;
    ``rest`` multiplies it for what AdamW trains.
    """

    momentum: BelowOne = 0.95
    weight_decay: NotNegative = 0.0
    rest: Annotated[float, Rule("above 0", lambda value: value > 0)] = 1.0
    beta1: BelowOne = 0.9
    beta2: BelowOne = 0.99


OptimiserSpec = AdamW | SGD | Muon


@dataclass(frozen=True, kw_only=True)
class Constant(Checked, path="training.schedule.", kind="constant"):
    """The learning rate as it is, after a linear warm-up over a share of all steps."""

    warmup: BelowOne = 0.0


@dataclass(frozen=True, kw_only=True)
class Cosine(Checked, path="training.schedule.", kind="cosine"):
    """Linear warm-up over a share of all steps, then half a cosine down to ``floor``."""

    warmup: BelowOne = 0.05
    floor: Share = 0.0


@dataclass(frozen=True, kw_only=True)
class OneCycle(Checked, path="training.schedule.", kind="onecycle"):
    """Cosine up from ``start`` to the peak at a share of all steps, cosine down to 0 (Smith, 2018)."""

    peak: Inside = 0.3
    start: Share = 0.04


@dataclass(frozen=True, kw_only=True)
class Plateau(Checked, path="training.schedule.", kind="plateau"):
    """Multiply by ``factor`` whenever more than ``patience`` epochs brought no lower validation loss."""

    factor: Inside = 0.5
    patience: Positive = 5


ScheduleSpec = Constant | Cosine | OneCycle | Plateau


_DEVICE = Rule(
    "cpu, auto, or a device of torch such as cuda:1",
    lambda value: re.fullmatch(r"[a-z][a-z0-9_]*(:[0-9]+)?", value) is not None,
)


@dataclass(frozen=True, kw_only=True)
class Training(Checked, path="training."):
    """How a model is trained."""

    epochs: Natural = 20
    """Passes over the training data."""
    batch: Positive = 128
    lr: Annotated[float, Rule("above 0 and finite", lambda value: 0 < value < math.inf)] = 1e-3
    """Peak learning rate."""
    optimiser: OptimiserSpec = AdamW()
    schedule: ScheduleSpec = OneCycle()
    clip: NotNegative = 1.0
    """Largest norm of the gradient; 0 switches clipping off."""
    ema: BelowOne = 0.0
    """Decay of the running average of weights that is evaluated and kept; 0 switches it off."""
    smoothing: BelowOne = 0.0
    """Label smoothing (Szegedy et al., 2016)."""
    patience: Natural = 0
    """Epochs without a lower validation loss, as it is trained, before training stops; 0 never stops."""
    threads: Annotated[int, up_to(MOST_THREADS)] = 0
    """Threads of torch; 0 chooses by a short measurement, once for each machine and model shape."""
    watch: Literal["valid", "test"] = later("valid")
    """``test``: log the accuracy on test examples after each epoch too; nothing is chosen by it."""
    steps: Natural = later(0)
    """End after so many steps, although epochs are left; 0 goes through all epochs."""
    precision: Literal["float32", "bfloat16", "auto"] = later("float32")
    """``bfloat16``: products of a step in half the bits, which some processors compute twice as fast and
    others many times slower; ``auto``: only where they are fast. Weights, their updates and all measuring
    stay in 32 bits."""
    perfect: Natural = later(0)
    """Epochs in a row with every validation example right, before training stops; 0 never stops."""
    snapshots: tuple[int, ...] = later(())
    """Keep weights on the way, for 'attnlab timelapse'. One number: so many, at steps evenly spaced in
    their logarithm. Several: these steps, of which 0 is the start. The end is always kept."""
    device: Annotated[str, _DEVICE] = later(CPU)
    """Where it is trained: cpu, auto (an accelerator if torch finds one), or a device of torch such as
    cuda:1 or mps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.snapshots) == 1:
            (count,) = self.snapshots
            rule = f"from 2 to {MOST_SNAPSHOTS}, or several steps such as 0 100 1000"
            require(2 <= count <= MOST_SNAPSHOTS, "training.snapshots", count, rule)
        rising = all(a < b for a, b in pairwise((-1, *self.snapshots)))
        rule = "steps from 0 on, each above the one before"
        require(rising, "training.snapshots", self.snapshots, rule)
        rule = f"at most {MOST_SNAPSHOTS} steps"
        require(len(self.snapshots) <= MOST_SNAPSHOTS, "training.snapshots", self.snapshots, rule)
