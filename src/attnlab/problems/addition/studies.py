"""Studies of addition: seeds, recipes, positional encodings, heads across seeds, the order of an answer.

``addition-length`` asks how far a model that learned from up to ten digits adds; ``addition-length-kinds``
gives the same model the same work with every positional encoding that an encoder-decoder can have.
"""

from dataclasses import replace
from typing import Any

from attnlab.presets import preset
from attnlab.problems.addition.task import Addition
from attnlab.problems.addition.words import CARRYING, Carrying
from attnlab.runs import RunFolder
from attnlab.specs import Learned, NoPositions, Rotary, Seq2SeqModel, Sinusoidal, Spec, with_settings
from attnlab.studies.study import (
    EXACT_MATCH,
    STEPS_TO_99,
    Curve,
    Measure,
    Study,
    kept_value,
    read_analysis,
    wrong_analysis,
)

CORRECT = kept_value("correct", "right of all 1,000,000 sums", "verify", "correct", unit="count")
"""How many of all ordered pairs of operands greedy decoding gets right."""

FAR = (20, 30, 50, 70, 100, 150, 200)
_LONG = preset("addition", "long")


def _read(run: RunFolder, analysis: str, sums: Carrying) -> dict[int, float]:
    """Exact match by length, of one set of sums."""
    try:
        rows: list[dict[str, Any]] = read_analysis(run, analysis)["rows"]
        return {row["length"]: float(row["exact_match"]) for row in rows if row["sums"] == sums}
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise wrong_analysis(run, analysis, "no exact match by length") from error


def at_length(length: int, sums: Carrying, analysis: str) -> Measure:
    """Exact match at one length."""
    return Measure(
        name=f"{sums}_{length}",
        title=f"right at {length} digits, {sums} sums",
        unit="share",
        better="higher",
        read=lambda run: _read(run, analysis, sums).get(length),
        analysis=analysis,
    )


def by_length(sums: Carrying, analysis: str) -> Curve:
    """Exact match at every length that was measured."""
    return Curve(
        name=sums,
        title=f"right, {sums} sums",
        over="digits of an operand",
        unit="share",
        read=lambda run: _read(run, analysis, sums),
        analysis=analysis,
    )


def _placed(positions: str, **settings: object) -> Spec:
    return with_settings(_LONG, {"model.positions": positions, **settings})


KINDS = {
    "columns, relative, window of 1": _LONG,
    "columns, relative": _placed("coupled:inner=relative"),
    "columns, learned": _placed("coupled:inner=learned"),
    "columns, rotary": _placed("coupled:inner=rotary"),
    "columns, relative, log n": _placed("coupled:inner=relative", **{"model.log_scale": 12}),
    "none": _placed("none"),
    "learned": _placed("learned:length=512,scale=1.0"),
    "rotary": _placed("rotary"),
    "relative": _placed("relative:scale=1.0"),
    "columns, learned, window of 1": _placed("coupled:inner=learned,window=1"),
    "columns, rotary, window of 1": _placed("coupled:inner=rotary,window=1"),
    "columns, relative, window of 4": _placed("coupled:inner=relative,window=4"),
    "sinusoidal": _placed("sinusoidal"),
    "alibi": _placed("alibi"),
    "columns, sinusoidal": _placed("coupled:inner=sinusoidal"),
    "columns, relative, window of 2": _placed("coupled:inner=relative,window=2"),
}
"""Every way to say where tokens of sums stand: by number, by column, within a window of columns."""

_DEFAULT = preset("addition", "quick")  # the default of the time when these studies were made
_MODEL = _DEFAULT.model
assert isinstance(_MODEL, Seq2SeqModel)


def _small(order: str) -> Spec:
    """Two digits, width 32: a run takes a few seconds."""
    task = Addition(
        digits=2, order="least" if order == "least" else "most", train=3_000, valid=500, test=1_000
    )
    model = Seq2SeqModel(width=32, heads=2, hidden=64, positions=Learned(length=32, scale=1.0))
    return replace(
        _DEFAULT, task=task, model=model, training=replace(_DEFAULT.training, epochs=20, batch=64)
    )


STUDIES = (
    Study(
        name="addition-seeds",
        question="Does the default recipe learn every sum, whatever the seed?",
        variants={"default": _DEFAULT},
        measures=(CORRECT, EXACT_MATCH, STEPS_TO_99),
    ),
    Study(
        name="addition-recipes",
        question="How far does each recipe get, on test sums of its own kind?",
        variants={"default": _DEFAULT, "reference": preset("addition", "reference")},
        measures=(EXACT_MATCH, STEPS_TO_99),
    ),
    Study(
        name="addition-positions",
        question="Which positional encoding learns to add, and how fast?",
        variants={
            name: replace(_DEFAULT, model=replace(_MODEL, positions=positions))
            for name, positions in (
                ("learned", _MODEL.positions),
                ("sinusoidal", Sinusoidal()),
                ("rotary", Rotary()),
                ("none", NoPositions()),
            )
        },
        measures=(EXACT_MATCH, STEPS_TO_99),
        seeds=10,
        baseline="learned",
    ),
    Study(
        name="heads-across-seeds",
        question="Which heads does every seed grow, whatever their names?",
        variants={"default": _DEFAULT},
        measures=(EXACT_MATCH,),
        seeds=10,
        matches_heads=True,
    ),
    Study(
        name="addition-order",
        question="Is a sum learned faster when it starts with the ones? (two digits, a minute)",
        variants={"most first": _small("most"), "least first": _small("least")},
        measures=(EXACT_MATCH, STEPS_TO_99),
        baseline="most first",
    ),
    Study(
        name="addition-length",
        question="Does a model that learned from up to 10 digits add numbers of 20 to 200?",
        variants={"long": _LONG},
        measures=(
            EXACT_MATCH,
            *(at_length(length, sums, "lengths-200") for sums in CARRYING for length in FAR),
        ),
        curves=tuple(by_length(sums, "lengths-200") for sums in CARRYING),
    ),
    Study(
        name="addition-length-kinds",
        question="Which way to say where digits stand carries addition beyond the lengths of training?",
        variants=KINDS,
        measures=(
            EXACT_MATCH,
            *(at_length(each, sums, "lengths-kinds") for sums in CARRYING for each in (12, 20, 50, 100)),
        ),
        curves=tuple(by_length(sums, "lengths-kinds") for sums in CARRYING),
        seeds=2,
    ),
)
