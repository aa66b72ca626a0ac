"""What was observed of a training while it ran: ``observed.json``.

Steps are sampled: 1, 2, 4, ... and then evenly, some sixty in all. What is infinite or NaN is None.
"""

from dataclasses import dataclass, field
from typing import final

from attnlab.results import Result, Row


@final
@dataclass(frozen=True)
class LayerSample:
    """One layer, a group of parameters, at one step."""

    gradient: float | None
    """Its length before clipping; None too where autograd gave none."""
    weight: float | None
    """The length of the weights before the step."""
    update: float | None
    """How far the step moved them, over their length."""
    inward: float | None
    """The cosine between the step and minus the weights: 1 if all it does is to shrink them."""


@final
@dataclass(frozen=True)
class Sample:
    """One step of training."""

    step: int
    loss: float | None
    lr: float
    gradient: float | None
    """The length of the whole gradient before clipping."""
    nonfinite: float
    """The share of parameters whose gradient is infinite or NaN."""
    layers: dict[str, LayerSample]


@final
@dataclass(frozen=True)
class Window:
    """The losses of some steps in a row, the last of which is ``step``."""

    step: int
    loss: float
    highest: float


@final
@dataclass(frozen=True)
class Answers:
    """Counts by class or token, over the batches of sampled steps."""

    seen: dict[str, int]
    """As targets."""
    predicted: dict[str, int]
    """As the likeliest answer of the model."""
    silent: dict[str, int]
    """As targets of which the loss has no gradient at all."""
    between: dict[str, int]
    """Of these, how many stand between two targets in a row that have one, so that they are no padding; all
    of them where an example has a single target.
    """
    grouped: float | None = None
    """How much more alike the answers of a batch are than those of different batches: 0 if the examples are
    shuffled, 1 if each batch holds one answer; of the place of the answer where it is most.
    """


@final
@dataclass(frozen=True)
class Inputs:
    """The first input over the batches of sampled steps; ``mean`` and ``std`` of what is no token."""

    mean: float | None
    std: float | None
    repeated: float
    """The share of examples that are another one of their batch again."""


@final
@dataclass(frozen=True, kw_only=True)
class Observed(Result):
    """A training as it was observed, up to ``steps`` of ``total``, which is None where it is not known."""

    total: int | None
    steps: int
    starts: list[int]
    """The steps after which watching began: 0, and more where a stopped training went on."""
    samples: list[Sample]
    losses: list[Window]
    answers: Answers | None = None
    inputs: Inputs | None = None
    diverged: int | None = None
    """The step whose loss was the first to be infinite or NaN."""
    unseen: dict[str, str] = field(default_factory=dict)
    """What could not be observed, and why."""

    def records(self) -> list[Row]:
        """A row for each sampled step and layer."""
        return [
            {
                "step": sample.step,
                "loss": sample.loss,
                "lr": sample.lr,
                "layer": name,
                "gradient": layer.gradient,
                "weight": layer.weight,
                "update": layer.update,
                "inward": layer.inward,
            }
            for sample in self.samples
            for name, layer in sample.layers.items()
        ]

    @property
    def layers(self) -> list[str]:
        """Names of all layers, in the order of the model."""
        return list(dict.fromkeys(name for sample in self.samples for name in sample.layers))
