"""The protocol of a fault: one small class for each kind.

    @final
    class DropoutInEvaluation(Fault):
        \"\"\"Two passes over the same inputs differ in evaluation mode.\"\"\"

        kind = "dropout-in-evaluation"
        family = "attention"
        source = "probe"
        looks_at = "logits of two passes in evaluation mode"
        limits = (ROUNDING,)

        def examine(self, patient: Patient) -> Finding | None: ...

``examine`` returns a finding, None where all is well, or raises ``UncheckedError`` with the reason why it
cannot say, ``InapplicableError`` where there is nothing to check. What costs time and is of use to several
faults (recordings, answers) belongs to the ``Patient``. Experiments train on ``patient.bench``, which keeps
to the budget.

A file in ``explained``, here ``dropout_in_evaluation.py``, says why the fault does what it does and shows
it in a few lines; the page of a diagnosis has both.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from attnlab.doctor.findings import Curve, Family, Finding, Remedy, Severity, Source
from attnlab.doctor.limits import Limit
from attnlab.doctor.patient import Patient


class Fault(ABC):
    """One kind of fault. The first line of its docstring says what is wrong."""

    kind: ClassVar[str]
    family: ClassVar[Family]
    source: ClassVar[Source]
    looks_at: ClassVar[str]
    limits: ClassVar[tuple[Limit, ...]] = ()
    """The thresholds that decide."""
    explains: ClassVar[tuple[str, ...]] = ()
    """Kinds that it brings about, which stand below it."""

    @abstractmethod
    def examine(self, patient: Patient) -> Finding | None:
        """The finding, or None where there is no such fault."""

    def finding(
        self,
        severity: Severity,
        confidence: float,
        text: str,
        evidence: Mapping[str, float],
        remedy: Remedy,
        curve: Curve | None = None,
        *,
        from_start: bool = False,
    ) -> Finding:
        """A finding of this kind."""
        return Finding(
            kind=self.kind,
            severity=severity,
            confidence=confidence,
            family=self.family,
            source=self.source,
            text=text,
            evidence=dict(evidence),
            remedy=remedy,
            curve=curve,
            from_start=from_start,
        )
