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
from typing import Any, Literal, get_args

from attnlab.presets import preset
from attnlab.runs import RunFolder
from attnlab.specs import Pooling, Spec, to_json, with_settings
from attnlab.studies.study import (
    ACCURACY,
    Curve,
    Measure,
    Study,
    crossing,
    kept_value,
    read_analysis,
    wrong_analysis,
)

Row = dict[str, Any]
POSITIONS = {
    "none": "none",
    "sinusoidal": "sinusoidal",
    "learned": "learned:length=16",
    "rotary": "rotary",
    "alibi": "alibi",
    "relative": "relative:buckets=8,distance=4,scale=1.0",
    "randomised": "randomised:limit=512",
    "interpolated": "interpolated:inner=sinusoidal",
}
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
REFERENCE_LENGTHS = (32, 64, 128, 256)
FAR_LENGTHS = (256, 1024, 4096, 16384)


def _read(
    run: RunFolder, analysis: str, value: Callable[[Row], float], negatives: str | None = None
) -> dict[int, float]:
    """``value`` by length, of lists put out of order in one way if there are several."""
    try:
        rows = read_analysis(run, analysis)["rows"]
        return {row["length"]: value(row) for row in rows if row.get("negatives") == negatives}
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise wrong_analysis(run, analysis, "no accuracy by length") from error


def _accuracy(row: Row) -> float:
    return float(row["accuracy"])


def at_length(length: int, negatives: str, analysis: str = "lengths-256") -> Measure:
    """Accuracy at one length on lists put out of order in one way."""
    return Measure(
        f"{negatives}_{length}",
        f"accuracy at length {length:,}, {negatives} negatives",
        "share",
        "higher",
        read=lambda run: _read(run, analysis, _accuracy, negatives)[length],
        analysis=analysis,
    )


def by_length(negatives: str, analysis: str) -> Curve:
    """Accuracy over length on lists put out of order in one way."""
    return _over_length(negatives, f"accuracy, {negatives} negatives", analysis, _accuracy, negatives)


def by_both(analysis: str) -> tuple[Curve, Curve]:
    """The same on lists with one exchange, and on lists as the reference has them."""
    return by_length("swap", analysis), by_length("reference", analysis)


def commoner(negatives: str, analysis: str) -> Curve:
    """The share of the answer that a model gives more often: 1 says that it no longer looks at the list."""
    name, title = f"{negatives}_commoner", f"share of the commoner answer, {negatives} negatives"
    return _over_length(name, title, analysis, lambda row: max(row["answers"].values()), negatives)


def _over_length(
    name: str,
    title: str,
    analysis: str,
    value: Callable[[Row], float],
    negatives: str | None = None,
    unit: Literal["share", "number"] = "share",
) -> Curve:
    def read(run: RunFolder) -> dict[int, float]:
        return _read(run, analysis, value, negatives)

    return Curve(name=name, title=title, over="length of the list", unit=unit, read=read, analysis=analysis)


MARGINS = _over_length(
    "margin",
    "how far one exchange moves the evidence",
    "margins",
    lambda row: row["margin"],
    unit="number",
)
MARGIN = kept_value(
    *("margin_exponent", "exponent of the margin over length (-1: falls as 1/n)", "margins", "exponent"),
    unit="number",
)
_MOST = "most weight of a head on the place that is wrong"
FALLS = _over_length("fall", _MOST, "falls", lambda row: row["weight"], unit="number")
FALL = kept_value("fall_1024", f"{_MOST}, at length 1,024", "falls", "rows", -1, "weight", unit="number")

_DEFAULT, _GLOBAL, _REFERENCE = (preset("sorting", name) for name in ("default", "global", "reference"))
_FEW = {"task": to_json(_REFERENCE.task), "training.epochs": 30}
"""The preset with nothing but the reference's training lists."""
_DECAY = {**_FEW, "training.optimiser.weight_decay": 1.0}


def reference_spec(positions: str, pooling: Pooling) -> Spec:
    """The reference's model on its kind of lists."""
    model = {"model.positions": POSITIONS[positions], "model.pooling": pooling}
    return with_settings(_REFERENCE, {**model, "training.epochs": 8})


def factorial_spec(positions: str, pooling: Pooling) -> Spec:
    """A small model that sees new lists all the time."""
    small = {"width": 64, "heads": 4, "layers": 2, "hidden": 128}
    model = {"kind": "tokens", **small, "positions": {"kind": "none"}, "pooling": pooling}
    return with_settings(
        _GLOBAL, {"model": model, "model.positions": POSITIONS[positions], "training.epochs": 10}
    )


WHOLE = "all parts"
GLOBAL_PARTS: dict[str, dict[str, Any]] = {
    WHOLE: {},
    "no log n": {"model.log_scale": 0},
    "finer buckets": {"model.positions": "relative:distance=16,scale=1.0"},
    "rotary": {"model.positions": "rotary"},
    "lowest in place of mean": {"model.pooling": "lowest"},
    "lists of the default": {"task": to_json(_DEFAULT.task)},
}
"""The preset without a window, and with another part in the place of one of its own."""

STUDIES = (
    Study(
        name="sorting-reference",
        question="Why did the reference's models answer at chance beyond 16 numbers, and why did one not?",
        variants={
            crossing(name, pooling): reference_spec(name, pooling)
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
    ),
    Study(
        name="sorting-factorial",
        question="What decides length: where tokens stand, or how they are pooled?",
        variants={
            crossing(name, pooling): factorial_spec(name, pooling)
            for name in POSITIONS
            for pooling in POOLINGS
        },
        measures=(
            ACCURACY,
            at_length(256, "swap", "lengths-factorial"),
            at_length(256, "reference", "lengths-factorial"),
        ),
        factors=("positions", "pooling"),
    ),
    Study(
        name="sorting-lengths",
        question="Does a model that learned from 8 to 16 numbers classify lists of up to 16,384?",
        variants={
            "default": _DEFAULT,
            "10,000 lists": with_settings(_DEFAULT, _FEW),
            "10,000 lists, decay": with_settings(_DEFAULT, _DECAY),
            "10,000 lists, decay, exchanged": with_settings(_DEFAULT, {**_DECAY, "task.exchanged": 0.5}),
        },
        measures=(
            ACCURACY,
            *(
                at_length(length, way, "lengths-16384")
                for length in (16, *FAR_LENGTHS)
                for way in ("swap", "reference")
            ),
        ),
        curves=by_both("lengths-16384"),
    ),
    Study(
        name="sorting-global",
        question="How far does attention to all tokens get, and what breaks: place, softmax or pooling?",
        variants={part: with_settings(_GLOBAL, changed) for part, changed in GLOBAL_PARTS.items()},
        measures=(
            ACCURACY,
            *(at_length(length, "swap", "lengths-1024") for length in (16, 32, 64, 256, 1024)),
            at_length(1024, "reference", "lengths-1024"),
            MARGIN,
        ),
        curves=(*by_both("lengths-1024"), MARGINS),
        baseline=WHOLE,
    ),
    Study(
        name="sorting-global-seeds",
        question="How far does the preset with attention to all tokens get, on seeds that chose nothing?",
        variants={"global": _GLOBAL},
        measures=(
            ACCURACY,
            *(at_length(length, "swap", "lengths-4096") for length in (16, 256, 1024, 4096)),
            *(at_length(length, "reference", "lengths-4096") for length in (1024, 4096)),
        ),
        curves=by_both("lengths-4096"),
        seeds=10,
        first_seed=20,
    ),
    Study(
        name="sorting-margins",
        question="How much of one exchanged pair is left in the answer as lists grow?",
        variants={
            "reference, mean": reference_spec("sinusoidal", "mean"),
            "window, mean": with_settings(_DEFAULT, {"model.pooling": "mean"}),
            "window, lowest": _DEFAULT,
            "all tokens, mean": _GLOBAL,
            "all tokens, lowest": with_settings(_GLOBAL, {"model.pooling": "lowest"}),
        },
        measures=(ACCURACY, MARGIN, FALL),
        curves=(MARGINS, FALLS),
    ),
)
