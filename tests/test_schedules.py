import math

import pytest
import torch

from attnlab.specs import Constant, Cosine, OneCycle, Plateau, ScheduleSpec
from attnlab.training.optimisers import lr_factor, plateaus

HALF = math.sqrt(0.5)


@pytest.mark.parametrize(
    ("spec", "step", "expected"),
    [
        (Constant(), 0, 1.0),
        (Constant(), 99, 1.0),
        (Constant(warmup=0.09), 0, 0.1),
        (Constant(warmup=0.09), 8, 0.9),
        (Constant(warmup=0.09), 9, 1.0),
        (Cosine(warmup=0.0), 0, 1.0),
        (Cosine(warmup=0.0), 50, 0.5),
        (Cosine(warmup=0.0), 25, (1 + HALF) / 2),
        (Cosine(warmup=0.0), 100, 0.0),
        (Cosine(warmup=0.2, floor=0.1), 0, 1 / 21),
        (Cosine(warmup=0.2, floor=0.1), 19, 20 / 21),
        (Cosine(warmup=0.2, floor=0.1), 20, 1.0),
        (Cosine(warmup=0.2, floor=0.1), 60, 0.55),
        (Cosine(warmup=0.2, floor=0.1), 100, 0.1),
        (OneCycle(peak=0.2, start=0.04), 0, 0.04),
        (OneCycle(peak=0.2, start=0.04), 10, 0.52),
        (OneCycle(peak=0.2, start=0.04), 20, 1.0),
        (OneCycle(peak=0.2, start=0.04), 40, (1 + HALF) / 2),
        (OneCycle(peak=0.2, start=0.04), 60, 0.5),
        (OneCycle(peak=0.2, start=0.04), 100, 0.0),
        (OneCycle(peak=0.5, start=1.0), 25, 1.0),
    ],
)
def test_factor_by_hand(spec: ScheduleSpec, step: int, expected: float) -> None:
    assert lr_factor(spec, step, 100, []) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("losses", "patience", "expected"),
    [
        ([], 1, 0),
        ([3.0], 1, 0),
        ([3.0, 2.0, 1.0], 1, 0),
        ([1.0, 1.0], 1, 0),
        ([1.0, 1.0, 1.0], 1, 1),
        ([1.0, 2.0, 3.0], 2, 0),
        ([1.0, 2.0, 3.0, 2.0], 2, 1),
        ([1.0, 2.0, 0.5, 2.0, 2.0], 2, 0),
        ([1.0, *[2.0] * 4], 1, 2),
        ([1.0, *[2.0] * 5], 1, 2),
        ([1.0, *[2.0] * 6], 1, 3),
        ([5.0, 6.0, 6.0, 4.0, 6.0, 6.0], 1, 2),
        ([1.0, math.nan, math.nan], 1, 1),
    ],
)
def test_plateaus(losses: list[float], patience: int, expected: int) -> None:
    assert plateaus(losses, patience) == expected


def test_plateau_multiplies_once_for_each() -> None:
    spec = Plateau(factor=0.3, patience=1)
    for losses, expected in (([1.0], 1.0), ([1.0] * 3, 0.3), ([1.0] * 5, 0.09)):
        assert lr_factor(spec, 7, 100, losses) == pytest.approx(expected)


@pytest.mark.parametrize("patience", [1, 3])
def test_plateaus_count_as_torch_does(patience: int) -> None:
    losses = [5.0, 4.0, 4.5, 4.2, 4.1, 4.4, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7, 2.0, 2.1]
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=0.5, patience=patience, threshold=0.0
    )
    for epoch, loss in enumerate(losses):
        theirs.step(loss)
        ours = lr_factor(Plateau(factor=0.5, patience=patience), 0, 100, losses[: epoch + 1])
        assert optimiser.param_groups[0]["lr"] == pytest.approx(ours)
