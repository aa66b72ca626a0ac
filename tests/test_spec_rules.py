"""Every rule of a spec, broken just beyond its edge, and kept at its edge."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from attnlab.errors import SpecError, brief
from attnlab.problems.addition import Addition
from attnlab.problems.grids import Grids
from attnlab.specs import (
    SGD,
    AdamW,
    Alibi,
    Constant,
    Cosine,
    Coupled,
    GridLearned,
    GridSinusoidal,
    Interpolated,
    Learned,
    Muon,
    NoPositions,
    OneCycle,
    Plateau,
    PositionSpec,
    Randomised,
    Relative,
    Rotary,
    Seq2SeqModel,
    Sinusoidal,
    Spec,
    Training,
)
from attnlab.specs.positions import require_positions

FRACTION = "at least 0 and below 1"
BROKEN: list[tuple[Callable[..., Any], str, Any, str, str]] = [
    (Addition, "digits", 0, "task.digits", "from 1 to 200"),
    (Addition, "digits", 201, "task.digits", "from 1 to 200"),
    (Addition, "shortest", 4, "task.shortest", "from 0 to task.digits, which is 3"),
    *((Addition, name, 0, f"task.{name}", "at least 1") for name in ("train", "valid", "test")),
    *((Addition, n, 10**9 + 1, f"task.{n}", "at most 1,000,000,000") for n in ("train", "valid", "test")),
    (Sinusoidal, "base", 1.0, "model.positions.base", "above 1"),
    (Rotary, "base", 1.0, "model.positions.base", "above 1"),
    (Learned, "length", 0, "model.positions.length", "at least 1"),
    *((Relative, "buckets", number, "model.positions.buckets", "even and at least 4") for number in (2, 7)),
    (Relative, "distance", 8, "model.positions.distance", "at least 9 for 32 buckets"),
    (Relative, "scale", -0.1, "model.positions.scale", "at least 0 and finite"),
    (Randomised, "limit", 0, "model.positions.limit", "at least 1"),
    (Coupled, "limit", 0, "model.positions.limit", "at least 1"),
    (Coupled, "distance", 4, "model.positions.distance", "at least 5 for 16 buckets"),
    (Interpolated, "trained", 0, "model.positions.trained", "at least 1"),
    (GridSinusoidal, "base", 1.0, "model.positions.base", "above 1"),
    (GridLearned, "scale", -0.1, "model.positions.scale", "at least 0 and finite"),
    *((Seq2SeqModel, name, 0, f"model.{name}", "at least 1") for name in ("width", "heads", "hidden")),
    *(
        (Seq2SeqModel, f"{name}_layers", count, f"model.{name}_layers", "from 1 to 1,000")
        for name in ("encoder", "decoder")
        for count in (0, 1001)
    ),
    (
        Seq2SeqModel,
        "heads",
        3,
        "model.heads",
        "a divisor of model.width 128, such as 1, 2, 4, 8, 16, 32, 64",
    ),
    (Seq2SeqModel, "dropout", 1.0, "model.dropout", FRACTION),
    (Seq2SeqModel, "dropout", -0.1, "model.dropout", FRACTION),
    *((AdamW, name, 1.0, f"training.optimiser.{name}", FRACTION) for name in ("beta1", "beta2")),
    (SGD, "momentum", 1.0, "training.optimiser.momentum", FRACTION),
    *(
        (Muon, name, -0.5, f"training.optimiser.{name}", FRACTION)
        for name in ("momentum", "beta1", "beta2")
    ),
    (AdamW, "weight_decay", -1.0, "training.optimiser.weight_decay", "at least 0"),
    (SGD, "weight_decay", -1.0, "training.optimiser.weight_decay", "at least 0"),
    (Muon, "weight_decay", -1.0, "training.optimiser.weight_decay", "at least 0"),
    (Muon, "rest", 0.0, "training.optimiser.rest", "above 0"),
    (Constant, "warmup", 1.0, "training.schedule.warmup", FRACTION),
    (Cosine, "warmup", -0.1, "training.schedule.warmup", FRACTION),
    (Cosine, "floor", 1.1, "training.schedule.floor", "from 0 to 1"),
    (OneCycle, "peak", 0.0, "training.schedule.peak", "above 0 and below 1"),
    (OneCycle, "peak", 1.0, "training.schedule.peak", "above 0 and below 1"),
    (OneCycle, "start", 1.1, "training.schedule.start", "from 0 to 1"),
    (Plateau, "factor", 0.0, "training.schedule.factor", "above 0 and below 1"),
    (Plateau, "factor", 1.0, "training.schedule.factor", "above 0 and below 1"),
    (Plateau, "patience", 0, "training.schedule.patience", "at least 1"),
    (Training, "epochs", -1, "training.epochs", "at least 0"),
    (Training, "batch", 0, "training.batch", "at least 1"),
    (Learned, "scale", -0.1, "model.positions.scale", "at least 0 and finite"),
    (Training, "lr", 0.0, "training.lr", "above 0 and finite"),
    (Training, "lr", float("inf"), "training.lr", "above 0 and finite"),
    (Training, "lr", float("nan"), "training.lr", "above 0 and finite"),
    (Training, "clip", -1.0, "training.clip", "at least 0"),
    (Training, "ema", 1.0, "training.ema", FRACTION),
    (Training, "smoothing", 1.0, "training.smoothing", FRACTION),
    (Training, "patience", -1, "training.patience", "at least 0"),
    (Training, "threads", -1, "training.threads", "from 0 to 1024"),
    (Training, "threads", 1025, "training.threads", "from 0 to 1024"),
    *(
        (Training, "snapshots", steps, "training.snapshots", "steps from 0 on, each above the one before")
        for steps in ((3, 3), (-1, 5))
    ),
    (Training, "snapshots", tuple(range(1001)), "training.snapshots", "at most 1000 steps"),
    (Grids, "train", 10_000_001, "task.train", "at most 10,000,000"),
    (partial(Spec, task=Addition()), "seed", -1, "seed", "from 0 to 2147483647"),
    (partial(Spec, task=Addition()), "seed", 2**31, "seed", "from 0 to 2147483647"),
]


@pytest.mark.parametrize(("make", "field", "value", "key", "rule"), BROKEN)
def test_broken_rule(make: Callable[..., Any], field: str, value: Any, key: str, rule: str) -> None:
    with pytest.raises(SpecError) as caught:
        make(**{field: value})
    assert str(caught.value) == f"{key} is {brief(value)}, but it must be {rule}"


@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        (Addition, "digits", 3),
        (Addition, "digits", 12),
        (Addition, "test", 1),
        (Learned, "length", 1),
        (Seq2SeqModel, "dropout", 0.0),
        (Cosine, "floor", 1.0),
        (OneCycle, "start", 0.0),
        (Training, "clip", 0.0),
        (partial(Spec, task=Addition()), "seed", 2**31 - 1),
    ],
)
def test_rule_kept_at_its_edge(make: Callable[..., Any], field: str, value: Any) -> None:
    assert getattr(make(**{field: value}), field) == value


def test_rotary_needs_an_even_head() -> None:
    text = "model.heads is 2, but it must be such that a head's width is even for rotary positions, not 3"
    with pytest.raises(SpecError, match=text):
        Seq2SeqModel(width=6, heads=2, positions=Rotary())


def test_sinusoidal_needs_an_even_width() -> None:
    with pytest.raises(
        SpecError, match=r"model\.width is 15, but it must be even for sinusoidal positions"
    ):
        Seq2SeqModel(width=15, heads=3, positions=Sinusoidal())


@pytest.mark.parametrize("positions", [Randomised(), Interpolated()])
def test_a_decoder_needs_places_that_last(positions: Randomised | Interpolated) -> None:
    text = f"model.positions is '{positions.kind}', but it must be one whose places do not depend"
    with pytest.raises(SpecError, match=text):
        Seq2SeqModel(positions=positions)


@pytest.mark.parametrize(
    ("positions", "text"),
    [
        (Randomised(inner="rotary"), "even for rotary positions, not 3"),
        (Interpolated(), "even for rotary positions, not 3"),
        (Randomised(), "even for sinusoidal positions"),
        (Interpolated(inner="sinusoidal"), "even for sinusoidal positions"),
    ],
)
def test_what_is_made_of_mapped_places_has_its_needs(
    positions: Randomised | Interpolated, text: str
) -> None:
    with pytest.raises(SpecError, match=text):
        require_positions(positions, width=15, heads=5)


@pytest.mark.parametrize(
    "positions", [NoPositions(), Learned(), Alibi(), Relative(), Randomised(inner="learned")]
)
def test_other_positions_take_any_width(positions: PositionSpec) -> None:
    require_positions(positions, width=15, heads=3)


@pytest.mark.parametrize("positions", [NoPositions(), Learned()])
def test_other_positions_serve_a_decoder_of_any_width(positions: NoPositions | Learned) -> None:
    assert Seq2SeqModel(width=15, heads=3, positions=positions).positions == positions
