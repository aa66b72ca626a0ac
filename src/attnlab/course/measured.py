"""What is measured of shipped runs while answers are checked, each thing once a process."""

from functools import cache
from typing import Any

from attnlab.analysis.ablate.ablation import TRAINING, AblationResult, evaluate_without
from attnlab.analysis.ablate.baselines import Baseline, make_baseline
from attnlab.analysis.choices import BaselineName
from attnlab.analysis.heads import HeadsResult
from attnlab.analysis.subjects import Subject, load_subject
from attnlab.front.loading import load_run
from attnlab.front.run import Run
from attnlab.progress import silent

BLUR = 0.005
"""By how much weights and shares may differ between processors, and by rounding to two digits."""
EXAMPLES = 500
"""Validation examples on which heads are measured."""
VALIDATION = 2000
"""All validation examples of a shipped run of sums or lists."""
LISTS = 200
"""Lists of one length that are classified."""


@cache
def shipped(name: str) -> Run:
    """A run that ships with attnlab."""
    return load_run(name)


@cache
def ablated(name: str, baseline: BaselineName = "mean") -> AblationResult:
    """Every head of a shipped run taken out alone."""
    return shipped(name).ablate(baselines=[baseline], examples=EXAMPLES)


@cache
def measured_heads(name: str) -> HeadsResult:
    """Where every head of a shipped run looks."""
    return shipped(name).heads(examples=EXAMPLES)


@cache
def accuracy_without(name: str, heads: frozenset[str]) -> float:
    """The share of right validation answers without ``heads``, means of training examples in their place.

    This is what ``run.without(*heads, to="mean")`` and ``run.evaluate(split="valid")`` give: greedy
    decoding is right wherever teacher forcing is right everywhere.
    """
    return evaluate_without(_subject(name), [heads], _mean(name))[heads].exact_match


@cache
def _subject(name: str) -> Subject:
    return load_subject(shipped(name), split="valid", count=VALIDATION)


@cache
def _mean(name: str) -> Baseline:
    training = load_subject(shipped(name), split="train", count=TRAINING)
    return make_baseline("mean", training, training.examples, 0, lambda _: silent)


@cache
def explained(name: str, text: str, place: str) -> tuple[list[str], dict[str, list[float]]]:
    """The parts of an input, and the scores that each method gives them for one place of the answer."""
    found = shipped(name).explain(text, place=place)
    return found.parts, found.places[0].scores


@cache
def sorted_without(length: int, head: str) -> float:
    """The accuracy of ``zoo:sorter`` on lists of one ``length``, half of which have two neighbours
    exchanged, without ``head``, zeros in its place; with all heads if it is empty.
    """
    run = shipped("zoo:sorter")
    with run.without(*([head] if head else []), to="zero"):
        found: Any = run.lengths(lengths=str(length), negatives="swap", examples=LISTS)
    return float(found.rows[0].accuracy)
