"""How far training moved the weights: the distance of a matrix from its first value, over its size."""

from statistics import median

from attnlab.doctor.patient import Patient, UncheckedError


def movement(patient: Patient) -> float:
    """The median over matrices."""
    return patient.once("movement", lambda: _movement(patient))


def _movement(patient: Patient) -> float:
    first, last = patient.matrices
    if not first.keys() <= last.keys():
        raise UncheckedError("the training has not ended, so how far the weights get is not known")
    sizes = {name: matrix.norm().item() for name, matrix in first.items()}
    moved = [(last[n] - first[n]).norm().item() / sizes[n] for n in first if sizes[n] > 0]
    if not moved or max(moved) == 0:
        raise UncheckedError("the kept weights are those that training began with")
    return median(moved)
