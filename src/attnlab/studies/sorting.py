"""What decides whether a model that learned from short lists tells longer ones?

``sorting-reference`` repeats the reference's models on its kind of lists: three encodings, each with mean
pooling and with the pooling that compares neighbours for the model. ``sorting-factorial`` crosses every
encoding with every pooling, at a size that two cores finish.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

from attnlab.presets import preset
from attnlab.runs import Run
from attnlab.spec import (
    Alibi,
    Interpolated,
    Learned,
    NoPositions,
    Pooling,
    PositionSpec,
    Randomised,
    Relative,
    Rotary,
    Sinusoidal,
    SortingTask,
    Spec,
    TokensModel,
)
from attnlab.studies.measures import ACCURACY, read_analysis
from attnlab.studies.study import Measure, Study

POSITIONS: dict[str, PositionSpec] = {
    "none": NoPositions(),
    "sinusoidal": Sinusoidal(),
    "learned": Learned(length=16),
    "rotary": Rotary(),
    "alibi": Alibi(),
    "relative": Relative(distance=16),
    "randomised": Randomised(limit=512),
    "interpolated": Interpolated(inner="sinusoidal"),
}
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
REFERENCE_LENGTHS = (32, 64, 128, 256)


def at_length(length: int, negatives: str) -> Measure:
    """Accuracy at one length on lists put out of order in one way."""
    return Measure(
        name=f"{negatives}_{length}",
        title=f"accuracy at length {length}, {negatives} negatives",
        unit="share",
        better="higher",
        read=_reader(length, negatives),
        analysis="lengths-256",
    )


def _reader(length: int, negatives: str) -> Callable[[Run], float]:
    def read(run: Run) -> float:
        (row,) = (
            row
            for row in read_analysis(run, "lengths-256")["rows"]
            if row["length"] == length and row["negatives"] == negatives
        )
        return float(row["accuracy"])

    return read


def reference_spec(positions: PositionSpec, pooling: Pooling) -> Spec:
    """The reference's model on its kind of lists."""
    base = preset("sorting", "reference")
    assert isinstance(base.model, TokensModel)
    return replace(
        base,
        model=replace(base.model, positions=positions, pooling=pooling),
        training=replace(base.training, epochs=20),
    )


def factorial_spec(positions: PositionSpec, pooling: Pooling) -> Spec:
    """A small model that sees new lists all the time."""
    base = preset("sorting", "default")
    return replace(
        base,
        task=SortingTask(negatives="swap=0.5,reference=0.5", sampling="ranges", train=12_800, fresh=True),
        model=TokensModel(width=32, heads=4, layers=2, hidden=128, positions=positions, pooling=pooling),
        training=replace(base.training, epochs=10, batch=128, lr=3e-3),
    )


SORTING_STUDIES = (
    Study(
        name="sorting-reference",
        question="Why did the reference's models answer at chance beyond 16 numbers, and why did one not?",
        variants={
            f"{name}, {pooling}": reference_spec(POSITIONS[name], pooling)
            for pooling in ("mean", "boundary")
            for name in ("sinusoidal", "learned", "none")
        },
        measures=(
            ACCURACY,
            *(at_length(length, "reference") for length in REFERENCE_LENGTHS),
            at_length(256, "swap"),
        ),
        seeds=5,
    ),
    Study(
        name="sorting-factorial",
        question="What decides length: where tokens stand, or how they are pooled?",
        variants={
            f"{name}, {pooling}": factorial_spec(POSITIONS[name], pooling)
            for name in POSITIONS
            for pooling in POOLINGS
        },
        measures=(ACCURACY, at_length(256, "swap"), at_length(256, "reference")),
        seeds=5,
    ),
)
