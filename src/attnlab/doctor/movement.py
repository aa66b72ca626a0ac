"""How far training moved the weights: the distance of a matrix from its first value, over its size."""

from statistics import median

from attnlab.doctor.patient import Patient, UncheckedError


def movement(patient: Patient) -> float:
    """The median over matrices."""
    return patient.once("movement", lambda: _movement(patient))


def _movement(patient: Patient) -> float:
    first, last = patient.fresh.state_dict(), patient.model.state_dict()
    names = [name for name, weight in patient.model.named_parameters() if weight.dim() > 1]
    sizes = {name: first[name].norm().item() for name in names}
    moved = [(last[n].cpu() - first[n]).norm().item() / sizes[n] for n in names if sizes[n] > 0]
    if not moved or max(moved) == 0:
        raise UncheckedError("the kept weights are those that training began with")
    return median(moved)
