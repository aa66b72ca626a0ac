"""``diagnose``: why does it not learn?"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.display import Meter
from attnlab.errors import InputError
from attnlab.lazy import Later
from attnlab.runs import RunFolder

if TYPE_CHECKING:
    from attnlab.doctor import diagnose as doctor
    from attnlab.doctor import patient as patients
    from attnlab.doctor.findings import Diagnosis
    from attnlab.front import loading
    from attnlab.model import Model
    from attnlab.sets import Examples
else:
    doctor, patients = Later.parts("attnlab.doctor", "diagnose", "patient")
    loading = Later("attnlab.front.loading")


def diagnose(
    subject: "str | Path | RunFolder | Model",
    data: "Examples | None" = None,
    *,
    training: "Examples | None" = None,
    budget: float = 0.0,
) -> "Diagnosis":
    """Why a run, or a model of your own, does not learn: findings with evidence, confidence and remedy.

    ``subject`` is a run, its folder or ``zoo:NAME``; of a model ``data`` are the validation examples to
    probe it with, and ``training`` the training examples. ``budget`` are the seconds that experiments may
    take.

    >>> diagnose("zoo:adder").kinds
    []
    """
    if budget < 0:
        raise InputError(f"budget is {budget:g}; it must be 0 or more seconds")
    if isinstance(subject, str | Path):
        subject = loading.load_run(subject)
    if isinstance(subject, RunFolder):
        if data is not None or training is not None:
            raise InputError("a run has examples of its own; give data only with a model")
        patient = patients.Patient(subject.called, run=subject)
    else:
        patient = _model_patient(subject, data, training)
    with Meter("examining", 1) as meter:
        return doctor.diagnose(patient, budget=budget, progress=meter.update)


def _model_patient(model: Any, data: "Examples | None", training: "Examples | None") -> Any:
    if not hasattr(model, "sites"):
        kind = type(model).__name__
        raise InputError(
            f"{kind} is no run and no model that can be probed; make one by attnlab.wrap(module)"
        )
    if data is None:
        raise InputError(
            "a model is probed with examples; give data, such as attnlab.examples(inputs, labels)"
        )
    turned = model.batch_first() if hasattr(model, "batch_first") else model
    return patients.Patient(model.called, model=turned, examples=data, training=training)
