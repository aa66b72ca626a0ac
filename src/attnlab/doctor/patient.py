"""What the doctor looks at: a run, a watched loop, or a model with examples. Each part is made once, when
first asked for.

A part that is not there raises ``UncheckedError`` with the reason, so that the checks that need it are
named and all others are done.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeVar, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.devices import device_of
from attnlab.doctor.bench import Bench, Clock
from attnlab.doctor.findings import Remedy
from attnlab.doctor.limits import ROUNDING
from attnlab.doctor.loops import Watched
from attnlab.doctor.remedies import prescribed
from attnlab.errors import LabError
from attnlab.model import Model, Site
from attnlab.models import build_for
from attnlab.progress import Progress
from attnlab.runs import Metrics, Observed, RunFolder, load_start
from attnlab.sets import Examples, Splits
from attnlab.specs import Spec, Training
from attnlab.taps import record

if TYPE_CHECKING:
    from attnlab.studies.outcome import StudyResult
    from attnlab.studies.sweeps.parts import SweepResult

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
    """A run; or what is there of a model: how its training was watched, validation examples, and training
    examples, where ``missing`` says why there is no model or no example; or the result of a study or a
    sweep, of which nothing else is known.
    """

    def __init__(
        self,
        name: str,
        *,
        run: RunFolder | None = None,
        model: Model | None = None,
        examples: Examples | None = None,
        training: Examples | None = None,
        study: "StudyResult | None" = None,
        sweep: "SweepResult | None" = None,
        watched: Watched | None = None,
        missing: str = "",
    ) -> None:
        self.name = name
        self._run = run
        self._watched = watched
        self._missing = missing
        self._given = {"model": model, "valid": examples, "train": training}
        self.study = study
        self.sweep = sweep
        self._made: dict[str, Any] = {}
        self._bench: Bench | None = None
        self._modes: list[tuple[nn.Module, bool]] = []  # of the model's parts, before it was asked

    @property
    def spec(self) -> Spec:
        """The spec of the run."""
        return self.once("spec", self._spec)

    @property
    def known_spec(self) -> Spec | None:
        """The spec of the run, if there is one."""
        try:
            return self.spec
        except UncheckedError:
            return None

    @property
    def recipe(self) -> Training:
        """How it was trained, as the spec says or as an optimiser tells."""
        return self.once("recipe", self._recipe)

    @property
    def known_recipe(self) -> Training | None:
        """The same, if it is known."""
        try:
            return self.recipe
        except UncheckedError:
            return None

    @property
    def choices(self) -> int:
        """How many things an answer can be."""
        return self.once("choices", self._choices)

    @property
    def bench(self) -> Bench:
        """Where experiments are done."""
        if self._bench is None:
            raise UncheckedError("experiments need a budget")
        if self._run is None:
            raise UncheckedError("experiments need a run, whose spec says how it is trained")
        return self._bench

    def allow(self, budget: float, clock: Clock, progress: Progress) -> None:
        """Let experiments take ``budget`` seconds of ``clock``."""
        self._bench = Bench(self.build, budget, clock=clock, progress=progress) if budget > 0 else None

    def prescribed(self, remedy: Remedy) -> Remedy:
        """The remedy with the settings that the run's spec can have, and the command that applies them."""
        return prescribed(remedy, self.known_spec, self._run.path if self._run else None)

    @property
    def metrics(self) -> Metrics:
        """What the run logged: at least one window of steps or one epoch."""
        return self.once("metrics", self._metrics)

    @property
    def observed(self) -> Observed:
        """What was seen of the training while it ran."""
        return self.once("observed", self._observed)

    def require_ended(self) -> None:
        """Refuse to judge the end of a training that has not come."""
        watched = self._watched
        ended = watched.ended if watched else self._run is not None and self._run.summary() is not None
        if not ended:
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
    def matrices(self) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        """Those that training began with, and those that were kept, by name."""
        return self.once("matrices", self._matrices)

    @property
    def beginning(self) -> "Patient":
        """The same run with the weights that training began with."""
        return self.once("beginning", self._beginning)

    @property
    def splits(self) -> Splits:
        """The data of the run."""
        return self.once("splits", lambda: self.spec.task.splits(self.spec.seed))

    @property
    def judged(self) -> Examples:
        """Validation examples to measure accuracies on."""
        return self.once("judged", lambda: self.valid[slice(0, MEASURED)])

    @property
    def valid(self) -> Examples:
        """All validation examples."""
        return self.once("valid", lambda: self._examples("valid"))

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

    @property
    def influence(self) -> float:
        """How far another first input moves a logit, relative to their spread."""
        return self.once("influence", self._influence)

    def require_alive(self) -> None:
        """Refuse to look for the part that the input does not get past where nothing of it gets through."""
        if self.influence <= ROUNDING.value:
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

    def _recipe(self) -> Training:
        if self._watched is None:
            return self.spec.training
        if isinstance(self._watched.recipe, str):
            raise UncheckedError(self._watched.recipe)
        return self._watched.recipe

    def _choices(self) -> int:
        if self._watched is None:
            return self.spec.task.vocabulary
        if not self._watched.choices:
            raise UncheckedError("how many classes or tokens there are is not known")
        return self._watched.choices

    def _matrices(self) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        if self._watched is not None and self._run is None:
            if not self._watched.first:
                raise UncheckedError("the model has no matrix that may move")
            return self._watched.first, self._watched.last
        names = [name for name, weight in self.model.named_parameters() if weight.dim() > 1]
        first, last = self.fresh.state_dict(), self.model.state_dict()
        return {name: first[name] for name in names}, {name: last[name].cpu() for name in names}

    def _metrics(self) -> Metrics:
        if self._watched is not None:
            if not self._watched.metrics.lines:
                raise UncheckedError("no loss of a step was heard")
            return self._watched.metrics
        if self._run is None:
            raise UncheckedError("there is no run, so nothing was logged")
        if not self._run.file("metrics.jsonl").exists():
            raise UncheckedError("the run has no metrics.jsonl")
        found = self._run.metrics()
        if not found.steps and not found.epochs:
            raise UncheckedError("the run has logged no step yet")
        return found

    def _observed(self) -> Observed:
        if self._watched is not None:
            found = self._watched.observed
        elif self._run is None:
            raise UncheckedError("there is no run, so its training was not watched")
        elif not self._run.file("observed.json").exists():
            raise UncheckedError("the training was not watched")
        else:
            found = self._run.observed()
        if not found.samples:
            raise UncheckedError("no step of the training was looked at yet")
        return found

    def _model(self) -> Model:
        model = self._given["model"]
        if model is None and self._run is None:
            raise UncheckedError(self._missing or "there is no model")
        if model is None:
            assert self._run is not None
            model = self._run.model
        assert isinstance(model, Model)
        self._modes = [(part, part.training) for part in model.modules()]
        return model.eval()

    def _fresh(self) -> Model:
        spec = self.spec
        with torch.random.fork_rng():
            torch.manual_seed(spec.seed)
            return self.build(spec).eval()

    def _start(self) -> dict[str, Tensor] | None:
        assert self._run is not None
        return load_start(self._run)

    def build(self, spec: Spec) -> Model:
        """A model as training begins with it, by torch's generator and what the run starts from."""
        if self._run is None:
            raise UncheckedError("there is no run, so how the model was made is not known")
        start, model = self.once("start", self._start), build_for(spec)
        if start is not None:
            model.load_state_dict(start)
        return model

    def _beginning(self) -> "Patient":
        found = Patient(self.name, run=self._run, model=self.fresh)
        for name in ("spec", "splits", "valid", "learned", "judged"):
            with suppress(UncheckedError):
                found._made[name] = getattr(self, name)
        return found

    def _examples(self, split: str) -> Examples:
        given = self._given[split]
        if isinstance(given, Examples):
            if not len(given):
                raise UncheckedError("there are no examples")
            return given
        if self._run is None:
            validation = self._missing or "there are no validation examples"
            raise UncheckedError("there are no training examples" if split == "train" else validation)
        return self.splits.train if split == "train" else self.splits.valid

    def _seen(self) -> dict[str, Tensor]:
        names = [
            f"{site.path}.{part}" for site in self.sites for part in ("q", "k", "scores", "pattern", "z")
        ]
        with record(self.model, *names) as seen:
            self.ask(*self.inputs)
        return seen

    def _influence(self) -> float:
        first, *rest = self.inputs
        others = (first.roll(shift, 0) for shift in (1, 2, 3))
        return max(self.change(other, *rest).max().item() for other in others)

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
