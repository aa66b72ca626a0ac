"""Studies of addition: seeds, recipes, positional encodings, heads across seeds, the order of an answer."""

from dataclasses import replace

from attnlab.presets import preset
from attnlab.problems.addition.task import Addition
from attnlab.specs import Learned, NoPositions, Rotary, Seq2SeqModel, Sinusoidal, Spec
from attnlab.studies.study import EXACT_MATCH, STEPS_TO_99, Study, kept_value

CORRECT = kept_value("correct", "right of all 1,000,000 sums", "verify", "correct", unit="count")
"""How many of all ordered pairs of operands greedy decoding gets right."""

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
)
