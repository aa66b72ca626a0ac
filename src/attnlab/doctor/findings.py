"""What the doctor returns: findings, and the chart of everything that was checked."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, final

from attnlab.results import Result, Row

Severity = Literal["note", "warning", "serious"]
Family = Literal["optimisation", "data", "attention", "evaluation"]
Source = Literal["log", "probe", "experiment"]
Outcome = Literal["found", "clear", "inapplicable", "unchecked"]

SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")
"""The gravest first."""


@final
@dataclass(frozen=True)
class Curve:
    """A picture of the evidence: lines by their names over ``x``."""

    x_label: str
    y_label: str
    x: list[float]
    lines: dict[str, list[float]]


Setting = str | float | int | bool
Settings = dict[str, Setting]
"""Values by the keys of a spec, such as ``{"training.lr": 0.03}``; variants are words."""


@final
@dataclass(frozen=True)
class Remedy:
    """What to do: a sentence, and where they do it, settings of the spec, or a line of code for a training
    loop of one's own. A diagnosis makes the ``command`` of the settings.
    """

    text: str
    command: str = ""
    code: str = ""
    settings: Settings = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Finding:
    """One diagnosed fault. ``confidence`` goes from 0 to 1; ``evidence`` are numbers by their names."""

    kind: str
    severity: Severity
    confidence: float
    family: Family
    source: Source
    text: str
    evidence: dict[str, float]
    remedy: Remedy
    curve: Curve | None = None
    explained_by: str = ""
    """The kind of the finding that brings it about, if there is one."""
    from_start: bool = False
    """Whether it was there before the first step, or is one of the code, so that nothing that training made
    of the weights explains it.
    """


@final
@dataclass(frozen=True)
class Check:
    """One kind of fault and what became of it; ``reason`` says why it was not checked."""

    kind: str
    family: Family
    source: Source
    outcome: Outcome
    reason: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class Diagnosis(Result):
    """Findings, the most likely first, and what was checked, found clear, or could not be checked."""

    shown_by: ClassVar[str] = "attnlab.report.doctor"

    run: str
    findings: list[Finding]
    checks: list[Check]
    seconds: float

    @property
    def serious(self) -> list[Finding]:
        """Findings that say the model or its training is broken."""
        return [each for each in self.findings if each.severity == "serious"]

    @property
    def unchecked(self) -> list[Check]:
        """What could not be checked."""
        return [each for each in self.checks if each.outcome == "unchecked"]

    @property
    def kinds(self) -> list[str]:
        """The kinds of the findings, the most likely first."""
        return [each.kind for each in self.findings]

    def records(self) -> list[Row]:
        """A row for each kind of fault that was looked for."""
        found = {each.kind: each for each in self.findings}
        return [
            {
                "kind": each.kind,
                "family": each.family,
                "source": each.source,
                "outcome": each.outcome,
                "severity": found[each.kind].severity if each.kind in found else None,
                "confidence": found[each.kind].confidence if each.kind in found else None,
                "reason": each.reason,
            }
            for each in self.checks
        ]
