"""What the doctor finds, as the page shows it; and who asks the doctor of a run, or of a wrapped model.

Evidence travels as numbers and is drawn by the page. What is not finite travels as None.
"""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Protocol, final

from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.explanations import explanation_of
from attnlab.doctor.findings import Diagnosis, Finding
from attnlab.doctor.kept import keep_diagnosis, kept_diagnosis
from attnlab.doctor.patient import Patient
from attnlab.explorer.scene import CurveForm, DiagnosisForm, FindingForm, LineForm
from attnlab.model import Model
from attnlab.progress import Progress
from attnlab.runs import RunFolder
from attnlab.sets import Examples
from attnlab.tables.doctor import counted, source_words


class Doctor(Protocol):
    """Who is asked what is wrong."""

    def kept(self) -> Diagnosis | None:
        """What was found before; None if nobody has looked."""

    def diagnose(self, progress: Progress) -> Diagnosis:
        """Look for every kind of fault, and keep what was found where that can be."""


@final
@dataclass(frozen=True)
class RunDoctor:
    """Of a run. It reads a model of its own, which nobody else edits meanwhile."""

    run: RunFolder

    def kept(self) -> Diagnosis | None:
        return kept_diagnosis(self.run)

    def diagnose(self, progress: Progress) -> Diagnosis:
        fresh = replace(self.run)
        return keep_diagnosis(fresh, diagnose(Patient(self.run.called, run=fresh), progress=progress))


@final
class ModelDoctor:
    """Of a wrapped model with examples; what was found is kept in memory."""

    def __init__(self, model: Model, data: Examples) -> None:
        self._model, self._data = model, data
        self._kept: Diagnosis | None = None

    def kept(self) -> Diagnosis | None:
        return self._kept

    def diagnose(self, progress: Progress) -> Diagnosis:
        patient = Patient(self._model.called, model=self._model, examples=self._data)
        self._kept = diagnose(patient, progress=progress)
        return self._kept


def diagnosis_form(found: Diagnosis) -> DiagnosisForm:
    """A diagnosis as the page has it."""
    reasons = dict.fromkeys(each.reason for each in found.unchecked)
    return DiagnosisForm(
        findings=[_finding_form(each) for each in found.findings],
        checked=counted(found.checks),
        unchecked=[
            (", ".join(each.kind for each in found.unchecked if each.reason == reason), reason)
            for reason in reasons
        ],
    )


def _finding_form(found: Finding) -> FindingForm:
    why = explanation_of(found.kind)
    return FindingForm(
        kind=found.kind,
        severity=found.severity,
        confidence=found.confidence,
        source=source_words(found.source),
        text=found.text,
        explained_by=found.explained_by,
        evidence=[(name, _finite(value)) for name, value in found.evidence.items()],
        curve=_curve_form(found),
        remedy=found.remedy.text,
        command=found.remedy.command,
        code=found.remedy.code,
        why="" if why is None else why.text,
    )


def _curve_form(found: Finding) -> CurveForm | None:
    curve = found.curve
    if curve is None:
        return None
    lines = [LineForm(name, [_finite(each) for each in values]) for name, values in curve.lines.items()]
    return CurveForm(curve.x_label, curve.y_label, [_finite(each) for each in curve.x], lines)


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
