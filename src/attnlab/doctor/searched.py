"""The results of studies and sweeps that a diagnosis can look at, and where they lie."""

from pathlib import Path

from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.findings import Diagnosis
from attnlab.doctor.patient import Patient
from attnlab.doctor.searching import FAULTS
from attnlab.errors import RunError, SpecError
from attnlab.reading import read_json
from attnlab.studies.outcome import StudyResult, read_results
from attnlab.studies.sweeps.parts import SweepResult

STUDY, SWEEP = "study.json", "trials.json"


def result_at(path: Path) -> StudyResult | SweepResult | None:
    """The result in the folder or file ``path``; None if there is none of a study or a sweep."""
    if path.name == STUDY or (path / STUDY).is_file():
        return read_results(path.parent if path.name == STUDY else path)
    file = path if path.name == SWEEP else path / SWEEP
    return _sweep(file) if file.is_file() else None


def _sweep(file: Path) -> SweepResult:
    try:
        data = read_json(file)
        if not isinstance(data, dict):
            raise RunError(f"{file} is damaged: it holds no sweep")
        return SweepResult.from_json(data)
    except (OSError, ValueError, SpecError) as error:
        raise RunError(f"{file} is damaged: {error}") from error


def diagnose_search(found: StudyResult | SweepResult) -> Diagnosis:
    """What many runs together show: whether a seed, a test set or the edge of a range decides."""
    if isinstance(found, StudyResult):
        patient = Patient(found.study, study=found)
    else:
        patient = Patient(found.sweep, sweep=found)
    return diagnose(patient, faults=FAULTS)
