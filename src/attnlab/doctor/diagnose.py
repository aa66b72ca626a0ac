"""A diagnosis: every fault is looked for, and what cannot be checked is named with the reason."""

import time
from collections.abc import Iterable
from dataclasses import replace

from attnlab.doctor.bench import Clock, OverError
from attnlab.doctor.causes import ranked
from attnlab.doctor.fault import Fault
from attnlab.doctor.faults import FAULTS
from attnlab.doctor.findings import Check, Diagnosis, Finding, Outcome
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.doctor.rate_trials import RATES, refined
from attnlab.errors import LabError
from attnlab.progress import Progress, silent


def diagnose(
    patient: Patient,
    *,
    budget: float = 0.0,
    faults: Iterable[type[Fault]] = FAULTS,
    progress: Progress = silent,
    trying: Progress = silent,
    clock: Clock = time.monotonic,
) -> Diagnosis:
    """Look for ``faults``; ``budget`` are the seconds of experiments, of which ``trying`` hears."""
    began, findings, checks = time.perf_counter(), list[Finding](), list[Check]()
    kinds = sorted(faults, key=lambda each: each.source == "experiment")
    first = next((each for each in kinds if each.source == "experiment"), None)  # behind that of rates
    patient.allow(float(budget), clock, trying)
    with patient.untouched():
        for number, kind in enumerate(kinds):
            progress(number, len(kinds))
            if kind is first and budget > 0 and RATES & {each.kind for each in kinds}:
                findings, checks = refined(patient, findings, checks)
            fault = kind()
            outcome, reason, found = _examined(fault, patient)
            if found is not None:
                findings.append(found)
            checks.append(Check(fault.kind, fault.family, fault.source, outcome, reason))
        progress(len(kinds), len(kinds))
    findings = [replace(each, remedy=patient.prescribed(each.remedy)) for each in findings]
    order = ranked(findings, {each.kind: each.explains for each in kinds})
    return Diagnosis(run=patient.name, findings=order, checks=checks, seconds=time.perf_counter() - began)


def _examined(fault: Fault, patient: Patient) -> tuple[Outcome, str, Finding | None]:
    try:
        found = fault.examine(patient)
    except InapplicableError as why:
        return "inapplicable", str(why), None
    except (UncheckedError, OverError) as why:
        return "unchecked", str(why), None
    except LabError as error:
        return "unchecked", f"it could not be examined ({error})", None
    return ("clear" if found is None else "found"), "", found
