"""Measures: what studies read from a finished run."""

from typing import Any

from attnlab.analysis import Analysis
from attnlab.errors import RunError
from attnlab.runs import Run
from attnlab.studies.study import Measure

WINDOWS = 10
TARGET = 0.99


def correct_of_all(run: Run) -> float:
    """How many of all ordered pairs of operands greedy decoding gets right."""
    return float(read_analysis(run, "verify")["correct"])


def steps_to_target(run: Run) -> float | None:
    """The first step by which the last ten logged windows of training batches were 99% wholly right.

    Batches are measured before the model learns from them. Each window holds a 200th of all steps; in the
    first epoch its examples are new to the model.
    """
    windows = [line for line in run.metrics() if line["event"] == "step"]
    for place in range(WINDOWS, len(windows) + 1):
        recent = windows[place - WINDOWS : place]
        if sum(line["exact_match"] for line in recent) / WINDOWS >= TARGET:
            return float(recent[-1]["step"])
    return None


def last_entropy(run: Run) -> float | None:
    """How even the attention is in the end, 1 being uniform."""
    return _last_probe(run, "entropy")


def last_moved(run: Run) -> float | None:
    """How far the answer moves in the end when patches are shuffled."""
    return _last_probe(run, "moved")


def _last_probe(run: Run, key: str) -> float | None:
    probes = [line for line in run.metrics() if line["event"] == "probe" and key in line]
    return float(probes[-1][key]) if probes else None


def read_analysis(run: Run, analysis: str) -> dict[str, Any]:
    """What an analysis found in a finished run."""
    found = run.analysis(analysis)
    if found is None:
        raise RunError(f"run {run.path} has no analysis {analysis!r}")
    return found


def kept_share(name: str, title: str, analysis: Analysis, *path: str | int) -> Measure:
    """A share that an analysis keeps at ``path`` of what it finds."""
    return Measure(
        name=name,
        title=title,
        unit="share",
        better="higher",
        read=lambda run: float(_at(read_analysis(run, analysis), path)),
        analysis=analysis,
    )


def _at(found: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        found = found[key]
    return found


EXACT_MATCH = kept_share("exact_match", "exact match on test examples", "evaluate-test", "exact_match")
ACCURACY = kept_share("accuracy", "test accuracy", "evaluate-test", "exact_match")
VALID_ACCURACY = kept_share("valid_accuracy", "validation accuracy", "evaluate-valid", "exact_match")
VALID_EXACT_MATCH = kept_share(
    "valid_exact_match", "exact match on validation examples", "evaluate-valid", "exact_match"
)
OVER_VIEWS = kept_share(
    "over_views", "test accuracy, averaged over 9 views of each image", "views", "exact_match"
)
DIGITS = kept_share("digits", "digits of test grids that are right", "evaluate-test", "digit_accuracy")
CORRECT = Measure(
    name="correct",
    title="right of all 1,000,000 sums",
    unit="count",
    better="higher",
    read=correct_of_all,
    analysis="verify",
)
STEPS_TO_99 = Measure(
    name="steps_to_99",
    title="steps to 99% exact match",
    unit="steps",
    better="lower",
    read=steps_to_target,
)
ECE = Measure(
    name="ece",
    title="expected calibration error on test images",
    unit="ratio",
    better="lower",
    read=lambda run: float(read_analysis(run, "evaluate-test")["calibration"]["ece"]),
    analysis="evaluate-test",
)
ENTROPY = Measure(
    name="entropy",
    title="entropy of attention after training (1 = uniform)",
    unit="ratio",
    better="lower",
    read=last_entropy,
)
MOVED = Measure(
    name="moved",
    title="answer moved by shuffling the patches (total variation)",
    unit="ratio",
    better="higher",
    read=last_moved,
)
