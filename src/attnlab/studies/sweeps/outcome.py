"""What a sweep found: trials ranked by what one chooses a model by, the best spec, and warnings.

Trials are ranked by the metric, then by stability, then by how soon they got there, then by size.
"""

from pathlib import Path
from statistics import pstdev
from typing import Any, Literal

import optuna
from optuna.trial import FrozenTrial, TrialState

from attnlab.runs import describe_environment
from attnlab.spec import to_json
from attnlab.storage import write_json
from attnlab.studies.jobs import pool_run, run_name
from attnlab.studies.sweeps.ranges import LogNormal, LogUniform, Stepped
from attnlab.studies.sweeps.search import FORMAT, Sweep
from attnlab.studies.sweeps.space import Choice, Distribution, WeightedChoice
from attnlab.studies.tables import Table, show_value

STATES = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "running",
}
Scale = Literal["linear", "log", "choice"]
ENOUGH = 10  # finished trials below which importances mean nothing


def collect_sweep(sweep: Sweep, pool: Path, *, command: str) -> dict[str, Any]:
    """The outcome as JSON; all that depends on the clock is under ``timings``."""
    trials = [_trial(sweep, trial, pool) for trial in sweep.counted()]
    finished = sorted((t for t in trials if t["state"] == "finished"), key=lambda t: _rank(sweep, t))
    best = finished[0] if finished else None
    return {
        "format": FORMAT,
        "sweep": sweep.file.name,
        "command": command,
        "environment": describe_environment(),
        "method": sweep.file.method,
        "metric": {"name": sweep.file.metric.name, "goal": sweep.file.metric.goal},
        "searched": {key: each.describe() for key, each in sweep.file.parameters.items()},
        "ended": sweep.exhausted,
        "ranking": [trial["number"] for trial in finished],
        "best": best,
        "edges": edges(sweep, best),
        "importance": importance(sweep),
        "trials": trials,
        "skipped": [
            {"number": trial.number, "reason": trial.user_attrs["skipped"], **_parameters(trial)}
            for trial in sweep.skipped()
        ],
        "timings": {str(trial.number): _seconds(sweep, trial, pool) for trial in sweep.counted()},
    }


def keep_sweep(sweep: Sweep, outcome: dict[str, Any]) -> None:
    """Write the outcome and the best spec into the sweep's folder."""
    write_json(sweep.folder / "trials.json", outcome)
    if outcome["best"] is not None:
        best = sweep.study.trials[outcome["best"]["number"]]
        write_json(sweep.folder / "best.json", to_json(sweep.spec_of(best)))


def edges(sweep: Sweep, best: dict[str, Any] | None) -> list[str]:
    """A sentence for each parameter whose best value lies at the edge of what was searched."""
    sentences = []
    for key, distribution in sweep.file.parameters.items() if best is not None else ():
        assert best is not None
        side = distribution.edge(best["parameters"][key])
        if side is not None:
            sentences.append(
                f"{key} is best at {_shown(best['parameters'][key])}, the {side} edge of "
                f"{distribution.describe()}: the optimum may lie {'below' if side == 'lower' else 'above'}"
            )
    return sentences


def importance(sweep: Sweep) -> dict[str, float]:
    """Shares of the metric's variance by functional ANOVA (Hutter et al., 2014); none if trials are few."""
    values = [trial.value for trial in sweep.counted() if trial.state == TrialState.COMPLETE]
    if len(values) < ENOUGH or len(set(values)) < 2:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    shares = optuna.importance.get_param_importances(sweep.study, evaluator=evaluator)
    return {key: float(share) for key, share in shares.items()}


def scales(sweep: Sweep) -> dict[str, Scale]:
    """How each parameter's axis is drawn."""
    return {key: _scale(distribution) for key, distribution in sweep.file.parameters.items()}


def trials_table(outcome: dict[str, Any], *, rows: int | None = None) -> Table:
    """The ranked trials, then those that did not finish."""
    by_number = {trial["number"]: trial for trial in outcome["trials"]}
    ranked = [by_number[number] for number in outcome["ranking"]]
    rest = [trial for trial in outcome["trials"] if trial["state"] != "finished"]
    unit = "number" if "loss" in outcome["metric"]["name"] else "share"
    keys = tuple(outcome["searched"])
    columns = ("trial", "state", outcome["metric"]["name"], "stability", "steps", "parameters", *keys)
    cells = tuple(
        (
            str(trial["number"]),
            trial["state"],
            _number(trial["value"], unit),
            _number(trial["stability"], unit),
            show_value(trial["steps_to_converge"], "steps"),
            show_value(trial["parameter_count"], "count"),
            *(_shown(trial["parameters"][key]) for key in keys),
        )
        for trial in (ranked + rest)[:rows]
    )
    return Table(f"{outcome['sweep']}: {len(outcome['trials'])} trials", columns, cells)


def _trial(sweep: Sweep, trial: FrozenTrial, pool: Path) -> dict[str, Any]:
    run = pool_run(pool, sweep.spec_of(trial))
    lines = [line for line in run.metrics() if line["event"] == "epoch"] if run is not None else []
    summary = run.summary() if run is not None else None
    if trial.state == TrialState.PRUNED:  # the run may have gone further for somebody else
        lines = lines[: max(trial.intermediate_values, default=0)]
    values = [float(line[sweep.file.metric.name]) for line in lines]
    return {
        "number": trial.number,
        "state": STATES[trial.state],
        "value": trial.value,
        **_parameters(trial),
        "run": run_name(sweep.spec_of(trial)),
        "error": trial.user_attrs.get("error"),
        "epochs": len(lines),
        "stability": pstdev(values[len(values) // 2 :]) if len(values) > 1 else None,
        "steps_to_converge": _converged(lines, values),
        "parameter_count": None if summary is None else summary["parameters"],
    }


def _converged(lines: list[dict[str, Any]], values: list[float]) -> float | None:
    """The step of the first epoch that had gone 99% of the way from the first value to the kept one."""
    kept = [value for line, value in zip(lines, values, strict=True) if line["best"]]
    if not kept:
        return None
    near = abs(kept[-1] - values[0]) * 0.01
    return next(
        float(line["step"])
        for line, value in zip(lines, values, strict=True)
        if abs(value - kept[-1]) <= near or (value - kept[-1]) * (kept[-1] - values[0]) > 0
    )


def _rank(sweep: Sweep, trial: dict[str, Any]) -> tuple[float, ...]:
    sign = -1.0 if sweep.file.metric.goal == "maximize" else 1.0
    return (
        sign * trial["value"],
        trial["stability"] or 0.0,
        trial["steps_to_converge"] or 0.0,
        float(trial["parameter_count"] or 0),
        float(trial["number"]),
    )


def _parameters(trial: FrozenTrial) -> dict[str, Any]:
    return {"parameters": trial.user_attrs["parameters"]}


def _seconds(sweep: Sweep, trial: FrozenTrial, pool: Path) -> float | None:
    run = pool_run(pool, sweep.spec_of(trial))
    summary = run.summary() if run is not None else None
    return None if summary is None else float(summary["seconds"])


def _scale(distribution: Distribution) -> Scale:
    match distribution:
        case LogUniform() | LogNormal() | Stepped(of=LogUniform()):
            return "log"
        case Choice(options=options) | WeightedChoice(options=options):
            return "linear" if all(isinstance(option, int | float) for option in options) else "choice"
        case _:
            return "linear"


def _number(value: float | None, unit: str) -> str:
    return f"{value:.5f}" if value is not None and unit == "number" else show_value(value, unit)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
