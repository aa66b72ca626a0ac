"""Places behind the longest training input: found where their vectors were never trained, nowhere else."""

import pytest
import torch
from torch import Tensor, nn

from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.findings import Diagnosis
from attnlab.doctor.patient import Patient
from attnlab.doctor.reach import PositionsUntrained
from attnlab.model import Model
from attnlab.positions import LearnedTable, Positions
from attnlab.positions.schemes import SinusoidalWaves
from attnlab.sets import Examples

CLASSES, WIDTH, TRAINED = 5, 6, 7


class Reader(Model):
    """Says the first token of a row, unless a place behind the trained ones is there."""

    def __init__(self, add: nn.Module) -> None:
        super().__init__()
        self.positions = Positions(add=add)  # type: ignore[arg-type]

    def forward(self, rows: Tensor) -> Tensor:
        said = rows[:, 0] if rows.shape[1] <= TRAINED else rows[:, 0] * 0
        return torch.eye(CLASSES)[said]

    def stack_positions(self) -> dict[str, Positions]:
        return {"tokens": self.positions}


def rows(count: int, length: int) -> Examples:
    chance = torch.Generator().manual_seed(length)
    given = torch.randint(0, CLASSES, (count, length), generator=chance)
    return Examples((given,), given[:, 0])


def looked(add: nn.Module, *, longest: int) -> Diagnosis:
    patient = Patient("reach", model=Reader(add), examples=rows(90, longest), training=rows(60, TRAINED))
    return diagnose(patient, faults=[PositionsUntrained])


def test_inputs_behind_the_trained_places_are_found() -> None:
    (found,) = looked(LearnedTable(width=WIDTH, length=13, scale=0.1), longest=11).findings
    assert found.severity == "serious"
    assert found.evidence["longest training input"] == TRAINED
    assert found.evidence["longest validation input"] == 11
    share = (rows(90, 11).targets == 0).double().mean().item()
    assert found.evidence["accuracy beyond it"] == pytest.approx(share)
    assert "accuracy within the trained length" not in found.evidence  # there is none to measure it on


def test_inputs_within_the_trained_places_and_fixed_waves_are_clear() -> None:
    (check,) = looked(LearnedTable(width=WIDTH, length=13, scale=0.1), longest=TRAINED).checks
    assert check.outcome == "clear"
    (check,) = looked(SinusoidalWaves(width=WIDTH), longest=11).checks
    assert (check.outcome, check.reason) == ("inapplicable", "the model trains no vectors of places")
