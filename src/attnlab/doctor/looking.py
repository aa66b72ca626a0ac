"""Looks at a training that goes on: a finding is told as soon as it is sure, each kind once.

Only what the log and the observed steps show is looked at, since that costs next to nothing. A noisy
beginning looks like many a fault for a moment, so a finding is sure when two looks in a row have it.
"""

from collections.abc import Callable
from typing import final

from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.fault import Fault
from attnlab.doctor.faults import FAULTS
from attnlab.doctor.findings import Finding
from attnlab.doctor.limits import SURE
from attnlab.doctor.patient import Patient
from attnlab.doctor.training_log import KeptByWrongMetric

MOMENTS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Shares of the steps after which somebody looks."""
FIRST = 64
"""The first look at a training of unknown length; the others come at every doubling."""
LOOKED: tuple[type[Fault], ...] = tuple(
    each for each in FAULTS if each.source == "log" and each is not KeptByWrongMetric
)
"""Kinds that can show before the end; other weights may be kept yet."""

Tell = Callable[[Finding], None]


@final
class Looks:
    """Looks at a training of ``total`` steps, if that is known, and tells what is sure."""

    def __init__(self, tell: Tell, total: int | None = None) -> None:
        self.told = list[Finding]()
        self._tell = tell
        self._moments = None if total is None else {max(1, round(share * total)) for share in MOMENTS}
        self._before = set[str]()

    def due(self, step: int) -> bool:
        """Whether to look after ``step``."""
        if self._moments is None:
            return step >= FIRST and step & (step - 1) == 0
        return step in self._moments

    def look(self, patient: Patient, *, last: bool = False) -> None:
        """Look for faults; at the ``last`` look there is nothing to wait for."""
        found = diagnose(patient, faults=LOOKED).findings
        told = {each.kind for each in self.told}
        for each in found:
            waited = last or each.kind in self._before
            if waited and sure(each) and each.kind not in told and not each.explained_by:
                self.told.append(each)
                self._tell(each)
        self._before = {each.kind for each in found if sure(each)}


def sure(finding: Finding) -> bool:
    """Whether to interrupt somebody with it."""
    return finding.severity != "note" and finding.confidence >= SURE.value
