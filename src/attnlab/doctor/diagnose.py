"""A diagnosis: every fault is looked for, and what cannot be checked is named with the reason."""

import time
from collections.abc import Iterable

from attnlab.doctor.fault import Fault
from attnlab.doctor.faults import FAULTS
from attnlab.doctor.findings import Check, Diagnosis, Finding, Outcome, ranked
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.errors import LabError
from attnlab.progress import Progress, silent


def diagnose(
    patient: Patient,
    *,
    budget: float = 0.0,
    faults: Iterable[type[Fault]] = FAULTS,
    progress: Progress = silent,
) -> Diagnosis:
    """Look for ``faults``; ``budget`` are the seconds that experiments may take."""
    began, findings, checks = time.perf_counter(), list[Finding](), list[Check]()
    kinds = list(faults)
    with patient.untouched():
        for number, kind in enumerate(kinds):
            progress(number, len(kinds))
            fault = kind()
            outcome, reason, found = _examined(fault, patient, budget)
            budget -= 0.0 if outcome == "unchecked" else fault.seconds
            if found is not None:
                findings.append(found)
            checks.append(Check(fault.kind, fault.family, fault.source, outcome, reason))
    progress(len(kinds), len(kinds))
    return Diagnosis(
        run=patient.name, findings=ranked(findings), checks=checks, seconds=time.perf_counter() - began
    )


def _examined(fault: Fault, patient: Patient, budget: float) -> tuple[Outcome, str, Finding | None]:
    if fault.seconds > budget:
        why = f"the experiment takes {fault.seconds:.0f} s and the budget is {max(budget, 0):.0f} s"
        return "unchecked", why, None
    try:
        found = fault.examine(patient)
    except InapplicableError as why:
        return "inapplicable", str(why), None
    except UncheckedError as why:
        return "unchecked", str(why), None
    except LabError as error:
        return "unchecked", f"it could not be examined ({error})", None
    return ("clear", "", None) if found is None else ("found", "", found)
