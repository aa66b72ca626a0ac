"""The whole of an experiment, and the hash that identifies it."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Literal, get_args

from attnlab.errors import SpecError
from attnlab.spec.codec import from_json, later, to_json
from attnlab.spec.grids import GridsTask
from attnlab.spec.images import CNNModel, MLPModel, PatchAttentionModel
from attnlab.spec.models import ModelSpec, Seq2SeqModel
from attnlab.spec.rules import require
from attnlab.spec.sorting import SortingTask
from attnlab.spec.tasks import AdditionTask, DigitsTask, TaskSpec
from attnlab.spec.tokens import TokensModel
from attnlab.spec.training import SGD, Muon, Training
from attnlab.spec.vit import ImageModelSpec, PatchSeq2SeqModel

# The kernels of the CNN see one channel, the image itself.
_WITHOUT_MATRICES = (CNNModel, MLPModel, PatchAttentionModel)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """An experiment: the task, the model, how it is trained, and the seed of all chance in it."""

    task: TaskSpec = field(default_factory=AdditionTask)
    model: ModelSpec = field(default_factory=Seq2SeqModel)
    training: Training = field(default_factory=Training)
    seed: int = 0
    engine: Literal["torch", "explicit"] = later("torch")
    """Who computes gradients: torch's autograd, or kernels written by hand for plain patch attention."""
    start: str = later("")
    """SHA-256 of the weights that training begins with, which the run holds; empty: fresh weights."""

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**31, "seed", self.seed, "from 0 to 2147483647")
        if not isinstance(self.model, _models(self.task)):
            raise SpecError(f"model {self.model.kind!r} cannot do the task {self.task.kind!r}")
        if isinstance(self.task, GridsTask) and isinstance(self.model, PatchSeq2SeqModel):
            for name in ("rows", "columns"):
                wanted, given = getattr(self.task, name), getattr(self.model, name)
                require(wanted == given, f"model.{name}", given, f"task.{name}, which is {wanted}")
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


def _models(task: TaskSpec) -> tuple[type, ...]:
    """The models that can do a task."""
    match task:
        case AdditionTask():
            return (Seq2SeqModel,)
        case DigitsTask():
            return get_args(ImageModelSpec)
        case SortingTask():
            return (TokensModel,)
        case GridsTask():
            return (PatchSeq2SeqModel,)


def spec_hash(spec: Spec) -> str:
    """Twelve hexadecimal digits that stay the same for the same experiment."""
    # Reading the JSON back turns whole numbers in float fields into floats, so that 1 and 1.0 agree.
    canonical = json.dumps(to_json(from_json(Spec, to_json(spec))), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
