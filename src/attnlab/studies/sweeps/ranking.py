"""Which trial is best: by the metric, then by stability, then by how soon it got there, then by size."""

from math import inf
from pathlib import Path
from statistics import pstdev
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from attnlab.studies.jobs import pool_run, run_name
from attnlab.studies.sweeps.parts import Goal
from attnlab.studies.sweeps.search import Sweep

STATES = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
}
NEAR = 0.01  # what is left of the way when a metric has converged


def describe_trial(sweep: Sweep, trial: FrozenTrial, pool: Path) -> dict[str, Any]:
    """A trial's row of the table."""
    spec, state = sweep.spec_of(trial), STATES[trial.state]
    run = pool_run(pool, spec)
    lines = [line for line in run.metrics() if line["event"] == "epoch"] if run is not None else []
    if state == "pruned":  # the run may have gone further for somebody else
        lines = lines[: max(trial.intermediate_values, default=0)]
    summary = run.summary() if run is not None and state == "finished" else None
    values = [float(line[sweep.file.metric.name]) for line in lines]
    return {
        "number": trial.number,
        "state": state,
        "value": trial.value,
        "parameters": trial.user_attrs["parameters"],
        "run": run_name(spec),
        "error": trial.user_attrs["error"] if state == "failed" else None,
        "epochs": len(lines),
        "stability": stability(values),
        "steps_to_converge": converged(lines, values),
        "parameter_count": None if summary is None else summary["parameters"],
    }


def rank(trial: dict[str, Any], goal: Goal) -> tuple[float, ...]:
    """What finished trials are sorted by, the best first."""
    ties = [trial[key] for key in ("stability", "steps_to_converge", "parameter_count", "number")]
    value = -trial["value"] if goal == "maximize" else trial["value"]
    return (value, *(inf if tie is None else float(tie) for tie in ties))


def stability(values: list[float]) -> float | None:
    """Standard deviation over the second half of the epochs; None of a single one."""
    return pstdev(values[len(values) // 2 :]) if len(values) > 1 else None


def converged(lines: list[dict[str, Any]], values: list[float]) -> float | None:
    """The step of the first epoch that had gone 99% of the way from the first value to the kept one."""
    kept = [value for line, value in zip(lines, values, strict=True) if line["best"]]
    if not kept:
        return None
    way = kept[-1] - values[0]
    return next(
        float(line["step"])
        for line, value in zip(lines, values, strict=True)
        if (value - values[0]) * way >= (1 - NEAR) * way * way
    )
