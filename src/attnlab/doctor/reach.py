"""Faults of length: inputs that reach beyond the places that training has seen."""

from typing import final

from jaxtyping import Bool
from torch import Tensor

from attnlab.doctor.causes import MISLED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.limits import GAP
from attnlab.doctor.patient import InapplicableError, Patient
from attnlab.doctor.quick import Sample


@final
class PositionsUntrained(Fault):
    """Inputs are longer than any of training, and the vectors of the places beyond were never trained.

    A vector of a place gets a gradient only from inputs that reach it, so behind the longest training input
    it is what it was drawn as, but for weight decay.
    """

    kind = "positions-untrained"
    family = "attention"
    source = "probe"
    looks_at = "lengths of training and validation inputs, in a model with a trained vector for each place"
    limits = (GAP,)
    explains = MISLED

    def examine(self, patient: Patient) -> Finding | None:
        slots = [each for each in patient.model.stack_positions().values() if each.mapping is None]
        if not any(each.add is not None and list(each.add.parameters()) for each in slots):
            raise InapplicableError("the model trains no vectors of places")
        trained, asked = (Sample(each, patient.padding) for each in (patient.learned, patient.judged))
        if not trained.is_tokens:
            raise InapplicableError("all its inputs have the same length")
        longest = int(trained.lengths.max())
        beyond = asked.lengths > longest
        if not beyond.any():
            return None
        right = _right(patient)
        lost = _share(right[~beyond]) - _share(right[beyond]) if not beyond.all() else 1 - _share(right)
        severity: Severity = "serious" if lost > GAP.value else "note"
        text = (
            f"validation inputs have up to {int(asked.lengths.max())} tokens, those of training at most "
            f"{longest}, and the vectors of the places beyond were never trained"
        )
        remedy = Remedy(
            "train on inputs as long as those to come, or use positions that know distances alone",
            settings={} if patient.known_spec is None else {"model.positions": "relative"},
            code="scores = scores + bias[(j - i).clamp(-limit, limit)]",
        )
        evidence = {
            "longest training input": float(longest),
            "longest validation input": float(asked.lengths.max()),
            "accuracy within the trained length": _share(right[~beyond]),
            "accuracy beyond it": _share(right[beyond]),
        }
        shown = {name: value for name, value in evidence.items() if value == value}
        return self.finding(severity, 0.9 if severity == "serious" else 0.5, text, shown, remedy)


def _right(patient: Patient) -> Bool[Tensor, "N"]:
    """Which validation examples are wholly right."""
    right = patient.said == patient.judged.targets
    return right.reshape(len(right), -1).all(dim=1)


def _share(right: Bool[Tensor, "N"]) -> float:
    """The share that is right; NaN of nothing."""
    return right.double().mean().item()


FAULTS = (PositionsUntrained,)
