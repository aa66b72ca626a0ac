"""What the doctor returns: findings, and the chart of everything that was checked."""

from dataclasses import dataclass
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


@final
@dataclass(frozen=True)
class Remedy:
    """What to do: a sentence, and a command or a line of code where one does it."""

    text: str
    command: str = ""
    code: str = ""


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

    shown_by: ClassVar[str] = "attnlab.tables.doctor"

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


def ranked(findings: list[Finding]) -> list[Finding]:
    """The gravest first, and of these the most certain."""
    return sorted(findings, key=lambda each: (SEVERITIES.index(each.severity), -each.confidence))
