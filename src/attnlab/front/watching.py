"""``watch``: a training loop of your own, watched while it runs, and diagnosed at its end."""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from attnlab.display import Meter, say
from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.findings import Diagnosis, Finding
from attnlab.doctor.looking import Looks, Tell
from attnlab.doctor.loops import evidence, first_matrices
from attnlab.doctor.patient import Patient
from attnlab.errors import InputError, LabError
from attnlab.foreign.plain import PlainModel
from attnlab.front.any_model import wrap
from attnlab.model import Model
from attnlab.runs import Observed
from attnlab.sets import Examples
from attnlab.tables.doctor import brief_lines
from attnlab.training.loop_records import Call
from attnlab.training.loops import Loop


@final
class Watching:
    """A model whose training is watched, by ``attnlab.watch``. Findings so far are in ``findings``."""

    def __init__(
        self, model: nn.Module, loop: Callable[[Callable[[int], None]], Loop], looks: Looks
    ) -> None:
        self._model = model
        self._first = first_matrices(model)
        self._looks = looks
        self._loop = loop(self._stepped)

    def loss(self, *given: Any, **named: Any) -> Any:
        """The loss function that is watched, called with what it takes."""
        return self._loop.loss(*given, **named)

    @property
    def findings(self) -> list[Finding]:
        """What was told so far."""
        return list(self._looks.told)

    @property
    def steps(self) -> int:
        """Steps that were taken since watching began."""
        return self._loop.watch.step

    def observed(self) -> Observed:
        """What was seen of the steps: gradients, updates, losses, answers."""
        return self._loop.watch.observed()

    def validate(self, inputs: Any, targets: Tensor) -> float:
        """The loss of the model on validation data, without a gradient; its accuracy is noted too.

        ``inputs`` is a tensor, a tuple of what the module takes, or a dictionary of it by name.
        """
        with _evaluating(self._model):
            if isinstance(inputs, dict):
                said = self._model(**inputs)
            else:
                said = self._model(*((inputs,) if isinstance(inputs, Tensor) else inputs))
            return float(self.loss(said, targets).mean())

    def diagnose(self, data: Examples | None = None, *, training: Examples | None = None) -> Diagnosis:
        """What is wrong now that training has ended: what was seen while it ran, and probes of the model.

        ``data`` are validation examples to probe it with, made by ``attnlab.examples``; without them some
        of the last evaluation are taken, or else of the last steps. ``training`` are training examples.
        """
        self._loop.settle()
        model, examples, missing = self._probed(data)
        patient = Patient(
            type(self._model).__name__,
            model=model,
            examples=examples,
            training=training,
            watched=evidence(self._loop, self._first, ended=True),
            missing=missing,
        )
        with Meter("examining", 1) as meter:
            return diagnose(patient, progress=meter.update)

    def close(self) -> None:
        """Watch no longer, and leave the model without hooks."""
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stepped(self, step: int) -> None:
        if self._looks.due(step):
            name = type(self._model).__name__
            patient = Patient(name, watched=evidence(self._loop, self._first, ended=False))
            self._looks.look(patient)

    def _probed(self, data: Examples | None) -> tuple[Model | None, Examples | None, str]:
        """A model and examples to probe it with, or why there are none."""
        call = self._loop.last
        examples = data or (call.examples() if call else None)
        if examples is None:
            return None, None, "inputs and targets were not seen example by example; give data"
        try:
            return _as_model(self._model, examples, call), examples, ""
        except LabError as error:
            return None, examples, str(error)


def _as_model(module: nn.Module, examples: Examples, call: Call | None) -> Model:
    """A copy that can be probed: with its attentions where they can be seen, else as it is."""
    if isinstance(module, Model):
        return module
    names = call.names if call is not None else ()
    few = examples[slice(0, 2)].inputs
    try:
        return wrap(module, inputs=dict(zip(names, few, strict=True)) if names else few).batch_first()
    except LabError:
        return PlainModel(module, names)


@contextmanager
def _evaluating(model: nn.Module) -> Any:
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in modes:
            part.training = mode


def watch(
    model: nn.Module,
    loss: Callable[..., Any] | None = None,
    optimiser: Optimizer | Sequence[Optimizer] = (),
    *,
    steps: int | None = None,
    tell: Tell | None = None,
) -> Watching:
    """Watch a training loop of your own: findings while it runs, and a diagnosis at its end.

    ``loss`` is what computes the loss: a module such as ``nn.CrossEntropyLoss()``, which is observed where
    it is called, or a function, which the loop then calls as ``watching.loss``. Without it the loss is that
    which the model gives, as models of Hugging Face do. ``optimiser`` is one or several; without it those
    count that hold weights of the model. ``steps`` says how many there will be, if that is known. A finding
    is printed once it is sure, or given to ``tell``.

    No value is changed. What is kept is bounded, and nearly every step costs next to nothing.

    >>> import torch
    >>> x, y = torch.randn(64, 3), torch.arange(64) % 2
    >>> model, loss = torch.nn.Linear(3, 2), torch.nn.CrossEntropyLoss()
    >>> optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> watching = watch(model, loss, optimiser)
    >>> for _ in range(20):
    ...     optimiser.zero_grad()
    ...     loss(model(x), y).backward()
    ...     _ = optimiser.step()
    >>> watching.steps
    20
    >>> found = watching.diagnose()
    >>> found.run
    'Linear'
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a {type(model).__name__}; give an nn.Module")
    if loss is not None and not callable(loss):
        raise InputError(f"loss is a {type(loss).__name__}; give a module or a function")
    if steps is not None and steps < 1:
        raise InputError(f"steps is {steps}; it must be 1 or more, or None if it is not known")
    optimisers = (optimiser,) if isinstance(optimiser, Optimizer) else tuple(optimiser)
    for each in optimisers:
        if not isinstance(each, Optimizer):
            raise InputError(f"optimiser is a {type(each).__name__}; give one of torch.optim, or several")
    return Watching(
        model,
        lambda after: Loop(model, loss, optimisers, total=steps, after=after),
        Looks(tell or _say, steps),
    )


def _say(finding: Finding) -> None:
    for line in brief_lines(finding):
        say(line)
