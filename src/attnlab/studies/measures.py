"""Measures: what studies read from a finished run."""

from typing import Any

from attnlab.errors import RunError
from attnlab.runs import Run
from attnlab.studies.study import Better, Measure, Unit

WINDOWS = 10
TARGET = 0.99


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


def last_probe(run: Run, key: str) -> float | None:
    """What the last probe of a training measured."""
    probes = [line for line in run.metrics() if line["event"] == "probe" and key in line]
    return float(probes[-1][key]) if probes else None


def read_analysis(run: Run, analysis: str) -> dict[str, Any]:
    """What an analysis found in a finished run."""
    found = run.analysis(analysis)
    if found is None:
        raise RunError(f"run {run.path} has no analysis {analysis!r}")
    return found


def kept_value(
    name: str,
    title: str,
    analysis: str,
    *path: str | int,
    unit: Unit = "share",
    better: Better = "higher",
) -> Measure:
    """What an analysis keeps at ``path`` of its JSON."""
    return Measure(
        name=name,
        title=title,
        unit=unit,
        better=better,
        read=lambda run: float(_at(read_analysis(run, analysis), path)),
        analysis=analysis,
    )


def _at(found: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        found = found[key]
    return found


EXACT_MATCH = kept_value("exact_match", "exact match on test examples", "evaluate-test", "exact_match")
ACCURACY = kept_value("accuracy", "test accuracy", "evaluate-test", "exact_match")
VALID_ACCURACY = kept_value("valid_accuracy", "validation accuracy", "evaluate-valid", "exact_match")
VALID_EXACT_MATCH = kept_value(
    "valid_exact_match", "exact match on validation examples", "evaluate-valid", "exact_match"
)
STEPS_TO_99 = Measure(
    name="steps_to_99",
    title="steps to 99% exact match",
    unit="steps",
    better="lower",
    read=steps_to_target,
)
