"""``diagnose``: why does it not learn?"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from attnlab.display import meters
from attnlab.errors import InputError
from attnlab.lazy import Later
from attnlab.progress import Progress
from attnlab.runs import RunFolder

if TYPE_CHECKING:
    from attnlab.doctor import diagnose as doctor
    from attnlab.doctor import kept as keeping
    from attnlab.doctor import patient as patients
    from attnlab.doctor import searched
    from attnlab.doctor.findings import Diagnosis
    from attnlab.front import loading
    from attnlab.model import Model
    from attnlab.sets import Examples
    from attnlab.studies.outcome import StudyResult
    from attnlab.studies.sweeps.parts import SweepResult
else:
    doctor, keeping, patients, searched = Later.parts(
        "attnlab.doctor", "diagnose", "kept", "patient", "searched"
    )
    loading = Later("attnlab.front.loading")


def diagnose(
    subject: "str | Path | RunFolder | Model | StudyResult | SweepResult",
    data: "Examples | None" = None,
    *,
    training: "Examples | None" = None,
    budget: float = 0.0,
) -> "Diagnosis":
    """Why a run, or a model of your own, does not learn: findings with evidence, confidence and remedy.

    ``subject`` is a run, its folder or ``zoo:NAME``; of a model ``data`` are the validation examples to
    probe it with, and ``training`` the training examples. ``budget`` are the seconds that experiments may
    take. Of the result of a study or a sweep, or its folder, it says whether a seed, a test set or the edge
    of a range decides.

    >>> diagnose("zoo:adder").kinds
    []
    """
    if budget < 0:
        raise InputError(f"budget is {budget:g}; it must be 0 or more seconds")
    if isinstance(subject, str | Path):
        found = searched.result_at(Path(subject)) if _holds_result(Path(subject)) else None
        subject = found or loading.load_run(subject)
    if _is_result(subject):
        return searched.diagnose_search(subject)
    if isinstance(subject, RunFolder):
        if data is not None or training is not None:
            raise InputError("a run has examples of its own; give data only with a model")
        patient = patients.Patient(subject.called, run=subject)
    else:
        patient = _model_patient(subject, data, training)
    with meters() as begin:
        experiments = list[Progress]()

        def trying(done: int, total: int) -> None:
            if not experiments:
                experiments.append(begin("trying, in seconds"))
            experiments[0](done, total)

        told = doctor.diagnose(patient, budget=budget, progress=begin("examining"), trying=trying)
    return keeping.keep_diagnosis(subject, told) if isinstance(subject, RunFolder) else told


def _holds_result(path: Path) -> bool:
    """Whether a study or a sweep has written down there what it found."""
    names = ("study.json", "trials.json")
    return path.name in names or any((path / name).is_file() for name in names)


def _is_result(subject: Any) -> "TypeGuard[StudyResult | SweepResult]":
    """Whether it is what a study or a sweep found; runs and models are no results."""
    return hasattr(subject, "shown_by")


def _model_patient(model: Any, data: "Examples | None", training: "Examples | None") -> Any:
    if not hasattr(model, "sites"):
        kind = type(model).__name__
        raise InputError(
            f"{kind} is neither a run nor a model that can be probed; make one by attnlab.wrap(module)"
        )
    if data is None:
        raise InputError(
            "a model is probed with examples; give data, such as attnlab.examples(inputs, labels)"
        )
    turned = model.batch_first() if hasattr(model, "batch_first") else model
    return patients.Patient(model.called, model=turned, examples=data, training=training)
