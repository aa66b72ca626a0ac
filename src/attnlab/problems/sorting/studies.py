"""What decides whether a model that learned from short lists tells longer ones?

``sorting-reference`` repeats the reference's models on its kind of lists: three encodings, each with mean
pooling and with the pooling that compares neighbours for the model. ``sorting-factorial`` crosses every
encoding with every pooling, at a size that two cores finish. ``sorting-lengths`` measures the preset to the
longest lists there are, with new lists all the time and with the reference's 10,000. ``sorting-global``
takes the window away, and then one part after the other; ``sorting-global-seeds`` repeats the preset with
seeds that nothing was chosen on. ``sorting-margins`` measures what is left of one exchanged pair in
longer lists.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args

from attnlab.presets import preset
from attnlab.problems.sorting.task import Sorting
from attnlab.runs import Run
from attnlab.spec import (
    Alibi,
    Interpolated,
    Learned,
    Muon,
    NoPositions,
    Pooling,
    PositionSpec,
    Randomised,
    Relative,
    Rotary,
    Sinusoidal,
    Spec,
    TokensModel,
)
from attnlab.studies.study import ACCURACY, Curve, Measure, Study, crossing, read_analysis

Row = dict[str, Any]
POSITIONS: dict[str, PositionSpec] = {
    "none": NoPositions(),
    "sinusoidal": Sinusoidal(),
    "learned": Learned(length=16),
    "rotary": Rotary(),
    "alibi": Alibi(),
    "relative": Relative(buckets=8, distance=4, scale=1.0),
    "randomised": Randomised(limit=512),
    "interpolated": Interpolated(inner="sinusoidal"),
}
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
REFERENCE_LENGTHS = (32, 64, 128, 256)
FAR_LENGTHS = (256, 1024, 4096, 16384)
REFERENCE_EPOCHS, FACTORIAL_EPOCHS, FEW_EPOCHS = 8, 10, 30
FEW_DECAY = 1.0


def at_length(length: int, negatives: str, analysis: str = "lengths-256") -> Measure:
    """Accuracy at one length on lists put out of order in one way."""

    def read(run: Run) -> float:
        (row,) = (
            row
            for row in read_analysis(run, analysis)["rows"]
            if row["length"] == length and row["negatives"] == negatives
        )
        return float(row["accuracy"])

    return Measure(
        name=f"{negatives}_{length}",
        title=f"accuracy at length {length:,}, {negatives} negatives",
        unit="share",
        better="higher",
        read=read,
        analysis=analysis,
    )


def by_length(negatives: str, analysis: str) -> Curve:
    """Accuracy over length on lists put out of order in one way."""
    return _over_length(
        negatives, f"accuracy, {negatives} negatives", analysis, _of(negatives, lambda row: row["accuracy"])
    )


def commoner(negatives: str, analysis: str) -> Curve:
    """The share of the answer that a model gives more often: 1 says that it no longer looks at the list."""
    return _over_length(
        f"{negatives}_commoner",
        f"share of the commoner answer, {negatives} negatives",
        analysis,
        _of(negatives, lambda row: max(row["answers"].values())),
    )


def _of(negatives: str, value: Callable[[Row], float]) -> Callable[[Row], float | None]:
    """``value`` of lists put out of order in one way, None of others."""
    return lambda row: value(row) if row["negatives"] == negatives else None


def _over_length(
    name: str,
    title: str,
    analysis: str,
    value: Callable[[Row], float | None],
    unit: Literal["share", "number"] = "share",
) -> Curve:
    def read(run: Run) -> dict[int, float]:
        found = ((row["length"], value(row)) for row in read_analysis(run, analysis)["rows"])
        return {length: each for length, each in found if each is not None}

    return Curve(name=name, title=title, over="length of the list", unit=unit, read=read, analysis=analysis)


MARGINS = _over_length(
    "margin", "how far one exchange moves the evidence", "margins", lambda row: row["margin"], "number"
)
MARGIN = Measure(
    name="margin_exponent",
    title="exponent of the margin over length (-1: falls as 1/n)",
    unit="number",
    better="higher",
    read=lambda run: read_analysis(run, "margins")["exponent"],
    analysis="margins",
)

FALLS = _over_length(
    "fall", "most weight of a head on the place that is wrong", "falls", lambda row: row["weight"], "number"
)
FALL = Measure(
    name="fall_1024",
    title="most weight of a head on the place that is wrong, at length 1,024",
    unit="number",
    better="higher",
    read=lambda run: read_analysis(run, "falls")["rows"][-1]["weight"],
    analysis="falls",
)


def reference_spec(positions: PositionSpec, pooling: Pooling) -> Spec:
    """The reference's model on its kind of lists."""
    base = preset("sorting", "reference")
    return replace(
        base,
        model=replace(_model(base), positions=positions, pooling=pooling),
        training=replace(base.training, epochs=REFERENCE_EPOCHS),
    )


def factorial_spec(positions: PositionSpec, pooling: Pooling) -> Spec:
    """A small model that sees new lists all the time."""
    base = preset("sorting", "global")
    return replace(
        base,
        model=TokensModel(width=64, heads=4, layers=2, hidden=128, positions=positions, pooling=pooling),
        training=replace(base.training, epochs=FACTORIAL_EPOCHS),
    )


def few_spec(*, decay: float = 0.0, exchanged: float = 0.0) -> Spec:
    """The preset with nothing but the reference's training lists.

    ``decay`` shrinks the weights; ``exchanged`` lets sorted lists of the set serve as unsorted ones too.
    """
    base = preset("sorting", "default")
    optimiser = base.training.optimiser
    assert isinstance(optimiser, Muon)
    training = replace(base.training, epochs=FEW_EPOCHS, optimiser=replace(optimiser, weight_decay=decay))
    return replace(base, task=Sorting(exchanged=exchanged), training=training)


def window_spec(pooling: Pooling) -> Spec:
    """The preset with a window, pooled in another way."""
    base = preset("sorting", "default")
    return replace(base, model=replace(_model(base), pooling=pooling))


WHOLE = "all parts"
GLOBAL_PARTS: dict[str, dict[str, Any]] = {
    WHOLE: {},
    "no log n": {"log_scale": 0},
    "finer buckets": {"positions": Relative(distance=16, scale=1.0)},
    "rotary": {"positions": Rotary()},
    "lowest in place of mean": {"pooling": "lowest"},
}
"""The preset without a window, and with another part in the place of one of its own."""
FORMER_LISTS = "lists of the default"


def global_spec(**changed: Any) -> Spec:
    """The preset without a window, with other fields of its model."""
    base = preset("sorting", "global")
    return replace(base, model=replace(_model(base), **changed))


def _model(spec: Spec) -> TokensModel:
    assert isinstance(spec.model, TokensModel)
    return spec.model


REPORTED: dict[str, tuple[tuple[float, ...], ...]] = {
    "sinusoidal, mean": ((45.4, 51.4, 51.8, 51.2), (54.6, 48.6, 48.2, 48.8)),
    "learned, mean": ((54.6, 48.6, 48.2, 48.8), (54.6, 48.6, 48.2, 48.8)),
    "none, mean": ((45.4, 51.4, 51.8, 51.2), (50.0, 44.2, 52.4, 49.2)),
}
"""Accuracy in percent at the reference's lengths, as its two reports have it."""

STUDIES = (
    Study(
        name="sorting-reference",
        question="Why did the reference's models answer at chance beyond 16 numbers, and why did one not?",
        variants={
            crossing(name, pooling): reference_spec(POSITIONS[name], pooling)
            for pooling in ("mean", "boundary")
            for name in ("sinusoidal", "learned", "none")
        },
        measures=(
            ACCURACY,
            *(at_length(length, "reference") for length in REFERENCE_LENGTHS),
            at_length(256, "swap"),
        ),
        curves=(
            by_length("reference", "lengths-256"),
            commoner("reference", "lengths-256"),
            by_length("swap", "lengths-256"),
        ),
        seeds=5,
    ),
    Study(
        name="sorting-factorial",
        question="What decides length: where tokens stand, or how they are pooled?",
        variants={
            crossing(name, pooling): factorial_spec(POSITIONS[name], pooling)
            for name in POSITIONS
            for pooling in POOLINGS
        },
        measures=(
            ACCURACY,
            at_length(256, "swap", "lengths-factorial"),
            at_length(256, "reference", "lengths-factorial"),
        ),
        seeds=5,
        factors=("positions", "pooling"),
    ),
    Study(
        name="sorting-lengths",
        question="Does a model that learned from 8 to 16 numbers tell lists of up to 16,384?",
        variants={
            "default": preset("sorting", "default"),
            "10,000 lists": few_spec(),
            "10,000 lists, decay": few_spec(decay=FEW_DECAY),
            "10,000 lists, decay, exchanged": few_spec(decay=FEW_DECAY, exchanged=0.5),
        },
        measures=(
            ACCURACY,
            *(
                at_length(length, way, "lengths-16384")
                for length in (16, *FAR_LENGTHS)
                for way in ("swap", "reference")
            ),
        ),
        curves=(by_length("swap", "lengths-16384"), by_length("reference", "lengths-16384")),
        seeds=5,
    ),
    Study(
        name="sorting-global",
        question="How far does attention to all tokens get, and what breaks: place, softmax or pooling?",
        variants={
            **{part: global_spec(**changed) for part, changed in GLOBAL_PARTS.items()},
            FORMER_LISTS: replace(preset("sorting", "global"), task=preset("sorting", "default").task),
        },
        measures=(
            ACCURACY,
            *(at_length(length, "swap", "lengths-1024") for length in (16, 32, 64, 256, 1024)),
            at_length(1024, "reference", "lengths-1024"),
            MARGIN,
        ),
        curves=(
            by_length("swap", "lengths-1024"),
            by_length("reference", "lengths-1024"),
            MARGINS,
        ),
        seeds=5,
        baseline=WHOLE,
    ),
    Study(
        name="sorting-global-seeds",
        question="How far does the preset with attention to all tokens get, on seeds that chose nothing?",
        variants={"global": preset("sorting", "global")},
        measures=(
            ACCURACY,
            *(at_length(length, "swap", "lengths-4096") for length in (16, 256, 1024, 4096)),
            *(at_length(length, "reference", "lengths-4096") for length in (1024, 4096)),
        ),
        curves=(by_length("swap", "lengths-4096"), by_length("reference", "lengths-4096")),
        seeds=10,
        first_seed=20,
    ),
    Study(
        name="sorting-margins",
        question="How much of one exchanged pair is left in the answer as lists grow?",
        variants={
            "reference, mean": reference_spec(POSITIONS["sinusoidal"], "mean"),
            "window, mean": window_spec("mean"),
            "window, lowest": preset("sorting", "default"),
            "all tokens, mean": preset("sorting", "global"),
            "all tokens, lowest": global_spec(pooling="lowest"),
        },
        measures=(ACCURACY, MARGIN, FALL),
        curves=(MARGINS, FALLS),
        seeds=5,
    ),
)
