"""What the doctor looks at: a run, or a model with examples. Each part is made once, when first asked for.

A part that is not there raises ``UncheckedError`` with the reason, so that the checks that need it are
named and all others are done.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import shorten
from typing import Any, TypeVar, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.devices import device_of
from attnlab.doctor.limits import ROUNDING
from attnlab.errors import LabError
from attnlab.model import Model, Site
from attnlab.models import build_for
from attnlab.runs import Metrics, RunFolder, load_start
from attnlab.sets import Examples, Splits
from attnlab.specs import Spec
from attnlab.taps import record

T = TypeVar("T")

PROBED = 16
"""Examples that probes look at."""
MEASURED = 200
"""Examples that accuracies are measured on."""
NUMBERS = 2**24
"""That a recording may hold, roughly."""


class UncheckedError(LabError):
    """Why a check could not be done."""


@final
class InapplicableError(UncheckedError):
    """Why there is nothing to check."""


@final
class Patient:
    """A run, or a model with validation examples and, if there are any, training examples."""

    def __init__(
        self,
        name: str,
        *,
        run: RunFolder | None = None,
        model: Model | None = None,
        examples: Examples | None = None,
        training: Examples | None = None,
    ) -> None:
        self.name = name
        self._run = run
        self._given = {"model": model, "valid": examples, "train": training}
        self._made: dict[str, Any] = {}
        self._modes: list[tuple[nn.Module, bool]] = []  # of the model's parts, before it was asked

    @property
    def spec(self) -> Spec:
        """The spec of the run."""
        return self.once("spec", self._spec)

    @property
    def metrics(self) -> Metrics:
        """What the run logged: at least one window of steps or one epoch."""
        return self.once("metrics", self._metrics)

    def require_ended(self) -> None:
        """Refuse to judge the end of a training that has not come."""
        if self._run is None or self._run.summary() is None:
            raise UncheckedError("the training has not ended, so its end cannot be judged")

    @property
    def model(self) -> Model:
        """The model in evaluation mode."""
        return self.once("model", self._model)

    @property
    def fresh(self) -> Model:
        """The model as training began with it."""
        return self.once("fresh", self._fresh)

    @property
    def splits(self) -> Splits:
        """The data of the run."""
        return self.once("splits", lambda: self.spec.task.splits(self.spec.seed))

    @property
    def judged(self) -> Examples:
        """Validation examples to measure accuracies on."""
        return self.once("judged", lambda: self._examples("valid")[slice(0, MEASURED)])

    @property
    def learned(self) -> Examples:
        """Training examples."""
        return self.once("learned", lambda: self._examples("train"))

    @property
    def probed(self) -> Examples:
        """A few validation examples, on the device of the model."""
        return self.once("probed", lambda: self.judged[slice(0, PROBED)].to(device_of(self.model)))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of the few examples."""
        return self.once("inputs", lambda: self.probed.inputs)

    @property
    def logits(self) -> Tensor:
        """What the model gives for the few examples."""
        return self.once("logits", lambda: self.ask(*self.inputs))

    @property
    def spread(self) -> float:
        """The standard deviation of the logits."""
        return max(self.logits.double().std().item(), 1e-12)

    @property
    def sites(self) -> list[Site]:
        """The attentions of the model; at least one."""
        found = self.model.sites()
        if not found and self.model.unseen():
            raise UncheckedError("no attention of the model can be observed")
        if not found:
            raise InapplicableError("the model has no attention")
        return found

    @property
    def seen(self) -> dict[str, Tensor]:
        """Values at the taps q, k, scores, pattern and z of every attention."""
        return self.once("seen", self._seen)

    @property
    def fed(self) -> int:
        """The number of the input that holds the tokens of the answer so far."""
        return self.once("fed", lambda: fed_input(self.model, self.inputs, self.probed.targets))

    @property
    def padding(self) -> int | None:
        """The input token that fills up shorter inputs; None where there is none or it is not known."""
        return None if self._run is None else self.spec.task.padding

    @property
    def accuracy(self) -> float:
        """The share of validation examples that are wholly right, with true tokens fed."""
        right = self.said == self.judged.targets
        return right.reshape(len(right), -1).all(dim=1).double().mean().item()

    @property
    def said(self) -> Tensor:
        """The likeliest classes or tokens for the validation examples, with true tokens fed."""
        return self.once("said", self._answers)

    def ask(self, *inputs: Any, seed: int = 0) -> Tensor:
        """The logits, without gradients; what is drawn on the way is the same each time."""
        model = self.model
        torch.manual_seed(seed)
        with asking():
            logits: Tensor = model(*inputs)
        if not logits.isfinite().all():
            raise UncheckedError("the model gives logits that are not finite")
        return logits.detach()

    @property
    def noise(self) -> float:
        """How far logits move between two passes over the same inputs, relative to their spread."""
        return self.once("noise", self._noise)

    def require_alive(self) -> None:
        """Refuse to look for the part that the input does not get past where nothing of it gets through."""
        if not self.once("alive", self._alive):
            raise UncheckedError("no logit depends on the input")

    def require_still(self) -> None:
        """Refuse to compare passes of different shapes where chance moves the logits."""
        if self.noise > ROUNDING.value:
            raise UncheckedError("the logits differ between two passes over the same inputs")

    def change(self, *inputs: Any) -> Float[Tensor, "..."]:
        """How far each logit moves if the few examples had these inputs, relative to their spread."""
        return (self.ask(*inputs) - self.logits).abs() / self.spread

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` gives, made once under ``name``; an error is kept as well."""
        if name not in self._made:
            try:
                self._made[name] = make()
            except UncheckedError as reason:
                self._made[name] = reason
            except (LabError, OSError) as error:
                self._made[name] = UncheckedError(str(error))
        kept = self._made[name]
        if isinstance(kept, UncheckedError):
            raise kept
        found: T = kept
        return found

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Leave the mode of the model and torch's generator as they were."""
        with torch.random.fork_rng():
            try:
                yield
            finally:
                for part, mode in self._modes:
                    part.training = mode

    def _spec(self) -> Spec:
        if self._run is None:
            raise UncheckedError("there is no run, so how it was trained is not known")
        return self._run.spec()

    def _metrics(self) -> Metrics:
        if self._run is None:
            raise UncheckedError("there is no run, so nothing was logged")
        if not self._run.file("metrics.jsonl").exists():
            raise UncheckedError("the run has no metrics.jsonl")
        found = self._run.metrics()
        if not found.steps and not found.epochs:
            raise UncheckedError("the run has logged no step yet")
        return found

    def _model(self) -> Model:
        model = self._given["model"]
        if model is None:
            assert self._run is not None
            model = self._run.model
        assert isinstance(model, Model)
        self._modes = [(part, part.training) for part in model.modules()]
        return model.eval()

    def _fresh(self) -> Model:
        spec = self.spec
        assert self._run is not None
        start = load_start(self._run)
        with torch.random.fork_rng():
            torch.manual_seed(spec.seed)
            model = build_for(spec)
        if start is not None:
            model.load_state_dict(start)
        return model.eval()

    def _examples(self, split: str) -> Examples:
        given = self._given[split]
        if isinstance(given, Examples):
            if not len(given):
                raise UncheckedError("there are no examples")
            return given
        if self._run is None:
            raise UncheckedError("there are no training examples")
        return self.splits.train if split == "train" else self.splits.valid

    def _seen(self) -> dict[str, Tensor]:
        names = [
            f"{site.path}.{part}" for site in self.sites for part in ("q", "k", "scores", "pattern", "z")
        ]
        with record(self.model, *names) as seen:
            self.ask(*self.inputs)
        return seen

    def _alive(self) -> bool:
        """Whether another first input moves a logit."""
        first, *rest = self.inputs
        others = (first.roll(shift, 0) for shift in (1, 2, 3))
        return any(self.change(other, *rest).max().item() > ROUNDING.value for other in others)

    def _noise(self) -> float:
        passes = (self.ask(*self.inputs, seed=seed) for seed in (1, 2))
        return max((each - self.logits).abs().max().item() for each in passes) / self.spread

    def _answers(self) -> Tensor:
        found, device = [], device_of(self.model)
        for start in range(0, len(self.judged), 50):
            part = self.judged[slice(start, start + 50)].to(device)
            found.append(self.ask(*part.inputs).argmax(dim=-1).cpu())
        return torch.cat(found)


@contextmanager
def asking() -> Iterator[None]:
    """No gradients; what the code of a model raises, which may be anything, is why a check is not done."""
    try:
        with torch.no_grad():
            yield
    except Exception as error:
        reason = shorten(str(error), 160) or type(error).__name__
        raise UncheckedError(f"the model fails: {reason}") from error


def distinct(values: Tensor) -> Tensor:
    """The rows that differ, in order."""
    found: Tensor = torch.unique(values, dim=0)
    return found


def own_tokens(patient: Patient) -> Tensor | None:
    """Which tokens of the first input are no padding (B, T), by the model or by the task; None where that
    is not known. A model may put a token in front, which is not part of the input.
    """
    tokens = patient.inputs[0]
    mask = patient.model.input_mask(*patient.inputs)
    if mask is not None and mask.shape == tokens.shape[:2]:
        return mask
    if patient.padding is None or tokens.is_floating_point() or tokens.dim() != 2:
        return None
    return tokens != patient.padding


def fed_input(model: Model, inputs: tuple[Any, ...], targets: Tensor) -> int:
    """The number of the input with the tokens of the answer that the model is given."""
    if targets.dim() < 2:
        raise InapplicableError("its answers are classes, not sequences")
    known = model.input_of("answer")
    if known is not None:
        return known
    whole = [each.shape == targets.shape and not each.is_floating_point() for each in inputs]
    for number in range(1, len(inputs)):
        if whole[number]:
            return number
    if len(inputs) == 1 and whole[0] and torch.equal(inputs[0][:, 1:], targets[:, :-1]):
        return 0
    raise UncheckedError("no input holds the tokens of the answer so far")
