"""The whole of an experiment, and the hash that identifies it."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Literal

from attnlab.errors import SpecError
from attnlab.spec.codec import from_json, later, to_json
from attnlab.spec.images import CNNModel, MLPModel, PatchAttentionModel
from attnlab.spec.models import ModelSpec, Seq2SeqModel
from attnlab.spec.rules import require
from attnlab.spec.task import Task
from attnlab.spec.training import SGD, Muon, Training

# The kernels of the CNN see one channel, the image itself.
_WITHOUT_MATRICES = (CNNModel, MLPModel, PatchAttentionModel)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """An experiment: the task, the model, how it is trained, and the seed of all chance in it."""

    task: Task
    model: ModelSpec = field(default_factory=Seq2SeqModel)
    training: Training = field(default_factory=Training)
    seed: int = 0
    engine: Literal["torch", "explicit"] = later("torch")
    """Who computes gradients: torch's autograd, or kernels written by hand for plain patch attention."""
    start: str = later("")
    """SHA-256 of the weights that training begins with, which the run holds; empty: fresh weights."""
    source: str = later("")
    """SHA-256 of the file that defines the task, which the run holds; empty: a task of a package."""

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**31, "seed", self.seed, "from 0 to 2147483647")
        self.task.check_model(self.model)
        if isinstance(self.training.optimiser, Muon) and isinstance(self.model, _WITHOUT_MATRICES):
            raise SpecError(
                "optimiser muon trains the matrices of transformer blocks and kernels between channels, "
                f"and model {self.model.kind!r} has neither; use --training.optimiser adamw"
            )
        if not self.start:
            require(self.training.epochs >= 1, "training.epochs", self.training.epochs, "at least 1")
        if self.engine == "explicit":
            self._check_explicit()

    def _check_explicit(self) -> None:
        """The hand-written engine knows one model and one way to train it."""
        training = self.training
        if not (isinstance(self.model, PatchAttentionModel) and self.model.plain):
            raise SpecError(
                "engine explicit has hand-written gradients for plain patch attention only: one head, "
                "no projection, no residual, no norm; use --engine torch"
            )
        if self.task.cell_shape != (1, 28, 28):
            raise SpecError(
                "engine explicit knows grey images of 28 x 28 pixels only, and the task's have the shape "
                f"{self.task.cell_shape}; use --engine torch"
            )
        if not isinstance(training.optimiser, SGD) or training.optimiser != SGD():
            raise SpecError("engine explicit takes plain SGD steps only; use --training.optimiser sgd")
        if training.precision != "float32":
            raise SpecError("engine explicit computes in float32 only; use --engine torch")
        for name in ("clip", "ema", "smoothing"):
            require(
                getattr(training, name) == 0,
                f"training.{name}",
                getattr(training, name),
                "0 for engine explicit",
            )


def spec_hash(spec: Spec) -> str:
    """Twelve hexadecimal digits that stay the same for the same experiment."""
    # Reading the JSON back turns whole numbers in float fields into floats, so that 1 and 1.0 agree.
    canonical = json.dumps(to_json(from_json(Spec, to_json(spec))), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
