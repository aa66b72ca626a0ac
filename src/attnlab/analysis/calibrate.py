"""Fitting the temperature of a run that has none yet, and what that does to its probabilities.

Training fits one at its end (``training.temperature``); runs of older versions get theirs here. Only
validation examples are asked. Answers stay as they are; what was kept of probabilities is removed.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from attnlab.analysis.image_evaluation import log_loss, measure_calibration
from attnlab.results import Result
from attnlab.runs import RunFolder
from attnlab.runs.files import SUMMARY
from attnlab.storage import as_json
from attnlab.training.temperature import answers_of, fit_temperature

TOLD = ("evaluate-*.json", "views.json")
"""Analyses that tell probabilities."""


@dataclass(frozen=True)
class Fit:
    """Mean of -log p(target), and the expected calibration error."""

    loss: float
    ece: float


@dataclass(frozen=True, kw_only=True)
class CalibrateResult(Result):
    """The ``temperature`` of a run; ``missed`` of so many validation ``tokens`` are answered wrongly."""

    shown_by: ClassVar[str] = "attnlab.tables.calibrate"

    run: str
    temperature: float
    tokens: int
    missed: int
    before: Fit
    after: Fit


def calibrate_run(run: RunFolder) -> CalibrateResult:
    """Fit the temperature of ``run`` and keep it in its summary."""
    spec = run.spec()
    logits, targets = answers_of(spec.task, run.model, spec.task.splits(spec.seed).valid)
    before, temperature = run.temperature, fit_temperature(logits, targets)
    if temperature != before:
        _keep(run, temperature)
    return CalibrateResult(
        run=run.name,
        temperature=temperature,
        tokens=len(targets),
        missed=int((logits.argmax(dim=-1) != targets).sum()),
        before=_fit(logits / before, targets),
        after=_fit(logits / temperature, targets),
    )


def _keep(run: RunFolder, temperature: float) -> None:
    with run.lock():
        summary = run.summary() or {}
        run.write({SUMMARY: as_json({**summary, "temperature": temperature})})
        told = [file for pattern in TOLD for file in run.folder("analysis").glob(pattern)]
        run.remove(*(f"analysis/{file.name}" for file in told))
    run.model.temperature = temperature


def _fit(logits: Tensor, targets: Tensor) -> Fit:
    said = logits.softmax(dim=-1)[:, None]
    return Fit(log_loss(said, targets[:, None]), measure_calibration(said, targets[:, None]).ece)
