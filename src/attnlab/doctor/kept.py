"""The diagnosis that a run keeps: as it was made, for the weights that are there now."""

from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.faults import FAULTS
from attnlab.doctor.findings import Diagnosis
from attnlab.doctor.patient import Patient
from attnlab.progress import Progress, silent
from attnlab.runs import RunFolder

NAME = "doctor"
"""What the file of it is called."""


def keep_diagnosis(run: RunFolder, found: Diagnosis) -> Diagnosis:
    """``found``, kept if the training has ended: what an earlier log shows is not true for long."""
    return run.keep(NAME, found) if run.file("summary.json").exists() else found


def kept_diagnosis(run: RunFolder) -> Diagnosis | None:
    """The diagnosis that is kept; None if there is none, or it did not look for all kinds there are now."""
    found = run.kept(NAME, Diagnosis) if run.file("summary.json").exists() else None
    if found is None or {each.kind for each in found.checks} < {each.kind for each in FAULTS}:
        return None
    return found


def diagnosis_of(run: RunFolder, *, progress: Progress = silent) -> Diagnosis:
    """The diagnosis that is kept, or one that is made now, without experiments."""
    kept = kept_diagnosis(run)
    return kept or diagnose(Patient(run.called, run=run), progress=progress)
