"""Real trainings of a few seconds: healthy ones, and ones that are made sick by a setting."""

from pathlib import Path
from typing import Any

import pytest

import attnlab as al
from attnlab.doctor.findings import Diagnosis

pytestmark = pytest.mark.slow

BRACKETS = Path(__file__).parents[1] / "examples/brackets.py"
SMALL: dict[str, Any] = {
    "task__pairs": 8,
    "task__train": 1200,
    "task__valid": 200,
    "task__test": 50,
    "model__width": 32,
    "model__hidden": 64,
    "model__layers": 2,
    "training__epochs": 12,
    "training__batch": 64,
    "training__lr": 0.003,
    "training__threads": 1,
}


def diagnosed(folder: Path, **settings: Any) -> Diagnosis:
    return al.train(BRACKETS, out=folder / "run", **(SMALL | settings)).diagnose()


def test_a_healthy_training_has_nothing_serious(tmp_path: Path) -> None:
    found = diagnosed(tmp_path)
    assert found.serious == []
    assert {check.source for check in found.unchecked} == {"experiment"}  # these need a budget


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("rate-too-low", {"training__lr": 1e-5, "training__schedule": "constant"}),
        (
            "rate-too-high",
            {"training__lr": 1.0, "training__schedule": "constant", "training__clip": 0.0},
        ),
        (
            "clipped-mostly",
            {"training__clip": 1e-3, "training__optimiser": "sgd", "training__lr": 0.1},
        ),
        ("positions-ignored", {"model__positions": "none"}),
        ("memorising", {"task__train": 60, "task__pairs": 10, "training__epochs": 80}),
    ],
)
def test_a_training_made_sick_by_a_setting_is_named_first(
    kind: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    assert diagnosed(tmp_path, **settings).kinds[0] == kind
