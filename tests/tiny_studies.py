"""Studies that take seconds, for the tests: ``--catalogue tests/tiny_studies.py``."""

from dataclasses import replace

from attnlab.presets import preset
from attnlab.problems.addition import Addition
from attnlab.runs import RunFolder
from attnlab.specs import SGD, Seq2SeqModel, Spec, Training, with_settings
from attnlab.studies import EXACT_MATCH, STEPS_TO_99, Measure, Study

TINY = Spec(
    task=Addition(digits=2, train=400, valid=40, test=60, order="least"),
    model=Seq2SeqModel(width=16, heads=2, hidden=32),
    training=Training(epochs=4, batch=32, lr=3e-3, threads=1),
)
BROKEN = replace(TINY, training=replace(TINY.training, lr=1e30, optimiser=SGD(), clip=0.0))
LONGER = replace(TINY, training=replace(TINY.training, epochs=7))


def token_accuracy(run: RunFolder) -> float:
    """A number that differs from seed to seed even when hardly anything was learned."""
    return float((run.summary() or {})["valid"]["token_accuracy"])


TOKENS = Measure(
    name="token_accuracy",
    title="token accuracy on validation examples",
    unit="share",
    better="higher",
    read=token_accuracy,
)

STUDIES = [
    Study(
        name="tiny",
        question="Does anything work?",
        variants={"plain": TINY, "post-norm": with_settings(TINY, {"model.norm": "post"})},
        measures=(EXACT_MATCH, TOKENS, STEPS_TO_99),
        seeds=2,
        baseline="plain",
    ),
    Study(
        name="tiny-shared",
        question="Does it share a run with the other?",
        variants={"plain": TINY},
        measures=(EXACT_MATCH,),
        seeds=2,
    ),
    Study(
        name="tiny-broken",
        question="What becomes of a run that cannot succeed?",
        variants={"broken": BROKEN, "plain": TINY},
        measures=(EXACT_MATCH,),
        seeds=2,
    ),
    Study(
        name="tiny-longer",
        question="Is there time to disturb it?",
        variants={
            "plain": LONGER,
            "default": replace(LONGER, training=replace(preset("addition", "default").training, epochs=14)),
        },
        measures=(EXACT_MATCH, TOKENS, STEPS_TO_99),
        seeds=2,
        baseline="plain",
    ),
    Study(
        name="tiny-slow",
        question="Is there time to lose a node?",
        variants={"plain": replace(TINY, training=replace(TINY.training, epochs=12))},
        measures=(EXACT_MATCH, TOKENS),
        seeds=4,
    ),
]
