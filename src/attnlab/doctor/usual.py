"""What is usual of a training: its rate, its schedule, its clip; remedies go there from far away.

The first steps of optimisers that divide a gradient by its usual size are as long as the rate alone makes
them, so the usual rate is the one that makes them a usual part of the weights. It falls with the width of a
model as it should. SGD's steps are as long as its gradients, so its usual rate is a number.
"""

import math

from attnlab.doctor.findings import Settings
from attnlab.doctor.limits import FAR, PEAK_AT_ONCE, USUAL, USUAL_STEP, WIDEST
from attnlab.doctor.patient import Patient, UncheckedError
from attnlab.doctor.remedies import default_of, own_default, rounded
from attnlab.doctor.watched import first_steps
from attnlab.specs import SGD, Training
from attnlab.training.optimisers import lr_factor

WARMED = "cosine:warmup=0.1"
"""A schedule that warms up and ends with the training."""
_STEPS = 1_000


def usual_rate(patient: Patient) -> float:
    """The learning rate that the model usually wants of its optimiser: by the first steps that were looked
    at, or else what small models want.
    """
    recipe = patient.recipe
    usual = USUAL[recipe.optimiser.kind].value
    try:
        first = first_steps(patient)
    except UncheckedError:
        return usual
    if isinstance(recipe.optimiser, SGD) or not 0 < first < math.inf:
        return usual
    measured = recipe.lr * USUAL_STEP.value / first
    return min(max(measured, usual / WIDEST.value), usual * WIDEST.value)


def faster(patient: Patient) -> float:
    """A higher rate: the usual one if that is far away, else three times the present one."""
    own, usual = patient.recipe.lr, usual_rate(patient)
    return rounded(usual if usual > FAR.value * own else 3 * own)


def slower(patient: Patient) -> float:
    """A lower rate: the usual one if that is far away, else a third of the present one."""
    own, usual = patient.recipe.lr, usual_rate(patient)
    return rounded(usual if usual < own / FAR.value else own / 3)


def other_rate(patient: Patient) -> float:
    """A rate to try where it is not known on which side the present one is."""
    far = FAR.value * patient.recipe.lr < usual_rate(patient)
    return faster(patient) if far else slower(patient)


def warmed(training: Training) -> Settings:
    """A schedule that warms up; nothing where the training has one."""
    begins = lr_factor(training.schedule, 0, _STEPS, [])
    return {} if begins < PEAK_AT_ONCE.value else {"training.schedule": WARMED}


def calmer(patient: Patient) -> Settings:
    """A lower rate with a warm-up and a clip."""
    return {"training.lr": slower(patient), **warmed(patient.recipe), "training.clip": 1.0}


def livelier(patient: Patient) -> Settings:
    """Another rate, a warm-up, and the usual gain of queries and keys, where a model chooses nothing."""
    spec = patient.known_spec
    if spec is None:
        return {}
    rate: Settings = {"training.lr": other_rate(patient), **warmed(spec.training)}
    return rate | own_default(spec, "gain")


def usual_clip(patient: Patient) -> float:
    """The clip of the task's default; 1 where it has none."""
    suited = default_of(patient.spec)
    return (suited.training.clip if suited else 0.0) or 1.0
