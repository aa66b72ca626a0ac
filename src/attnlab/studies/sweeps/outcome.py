"""What a sweep found: trials ranked by what one chooses a model by, the best spec, and warnings."""

from math import inf
from pathlib import Path
from statistics import pstdev
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from attnlab.runs import EpochRecord, describe_environment
from attnlab.specs import to_json
from attnlab.storage import write_json
from attnlab.studies.jobs import pool_run, run_name, seconds_of
from attnlab.studies.study import EXACT_MATCH, STEPS_TO_99, Study
from attnlab.studies.sweeps import parts
from attnlab.studies.sweeps.parts import (
    ENOUGH,
    Goal,
    Scale,
    SkippedTrial,
    Sought,
    SweepResult,
    TrialResult,
)
from attnlab.studies.sweeps.search import FORMAT, Sweep
from attnlab.studies.sweeps.space import Listed, LogNormal, LogUniform, Stepped

STATES: dict[TrialState, parts.TrialState] = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
}
NEAR = 0.01  # what is left of the way when a metric has converged


def collect_sweep(sweep: Sweep, pool: Path, *, command: str) -> SweepResult:
    metric, counted = sweep.file.metric, sweep.counted()
    trials = [describe_trial(sweep, trial, pool) for trial in counted]
    finished = [trial for trial in trials if trial.state == "finished"]
    ranked = sorted(finished, key=lambda trial: rank(trial, metric.goal))
    best = ranked[0] if ranked else None
    return SweepResult(
        format=FORMAT,
        sweep=sweep.file.name,
        command=command,
        environment=describe_environment(),
        method=sweep.file.method,
        metric=Sought(metric.name, metric.goal),
        searched={key: each.describe() for key, each in sweep.file.parameters.items()},
        ended=sweep.ended,
        ranking=[trial.number for trial in ranked],
        best=best,
        edges=[] if best is None else edges(sweep, best.parameters),
        importance=importance(sweep),
        trials=trials,
        skipped=[
            SkippedTrial(trial.number, trial.user_attrs["skipped"], trial.user_attrs["parameters"])
            for trial in sweep.skipped()
        ],
        timings={str(trial.number): seconds_of(pool_run(pool, sweep.spec_of(trial))) for trial in counted},
        scales=scales(sweep),
    )


def describe_trial(sweep: Sweep, trial: FrozenTrial, pool: Path) -> TrialResult:
    spec, state = sweep.spec_of(trial), STATES[trial.state]
    run = pool_run(pool, spec)
    epochs = run.metrics().epochs if run is not None else []
    if state == "pruned":  # the run may have gone further for somebody else
        epochs = epochs[: max(trial.intermediate_values, default=0)]
    summary = run.summary() if run is not None and state == "finished" else None
    values = [float(getattr(record, sweep.file.metric.name)) for record in epochs]
    return TrialResult(
        number=trial.number,
        state=state,
        value=trial.value,
        parameters=trial.user_attrs["parameters"],
        run=run_name(spec),
        error=trial.user_attrs["error"] if state == "failed" else None,
        epochs=len(epochs),
        stability=stability(values),
        steps_to_converge=converged(epochs, values),
        parameter_count=None if summary is None else summary["parameters"],
    )


def rank(trial: TrialResult, goal: Goal) -> tuple[float, ...]:
    """What finished trials are sorted by, the best first: by the metric, then by stability, by how soon
    they got there, and by size.
    """
    assert trial.value is not None
    ties = (trial.stability, trial.steps_to_converge, trial.parameter_count, trial.number)
    value = -trial.value if goal == "maximize" else trial.value
    return (value, *(inf if tie is None else float(tie) for tie in ties))


def stability(values: list[float]) -> float | None:
    """Standard deviation over the second half of the epochs; None of a single one."""
    return pstdev(values[len(values) // 2 :]) if len(values) > 1 else None


def converged(epochs: list[EpochRecord], values: list[float]) -> float | None:
    """The step of the first epoch that had gone 99% of the way from the first value to the kept one."""
    kept = [value for record, value in zip(epochs, values, strict=True) if record.best]
    if not kept:
        return None
    way = kept[-1] - values[0]
    return next(
        float(record.step)
        for record, value in zip(epochs, values, strict=True)
        if (value - values[0]) * way >= (1 - NEAR) * way * way
    )


def keep_sweep(sweep: Sweep, outcome: SweepResult) -> None:
    """Write the outcome, the best spec and the figures into the sweep's folder."""
    write_json(sweep.folder / "trials.json", outcome.to_json())
    outcome.save_figures(sweep.folder)
    if outcome.best is not None:
        best = sweep.trials()[outcome.best.number]
        write_json(sweep.folder / "best.json", to_json(sweep.spec_of(best)))


def best_again(sweep: Sweep, outcome: SweepResult, *, count: int, seeds: int) -> Study:
    """The best ``count`` specs with ``seeds`` that the search has not seen."""
    seen = [sweep.spec_of(trial).seed for trial in sweep.counted()]
    numbers = outcome.ranking[:count]
    return Study(
        name="retrained",
        question=f"How good are the best {len(numbers)} specs of {sweep.file.name} with fresh seeds?",
        variants={f"trial {number}": sweep.spec_of(sweep.trials()[number]) for number in numbers},
        measures=(EXACT_MATCH, STEPS_TO_99),
        seeds=seeds,
        first_seed=max(seen) + 1,
        made_by=f"{outcome.command} --retrain {count} --retrain-seeds {seeds}" if outcome.command else "",
    )


def edges(sweep: Sweep, best: dict[str, Any]) -> list[str]:
    """A sentence for each parameter whose best value lies at the edge of what was searched."""
    return [
        f"{key} is best at {_shown(best[key])}, the {side} edge of {distribution.describe()}: "
        f"the optimum may lie {'below' if side == 'lower' else 'above'}"
        for key, distribution in sweep.file.parameters.items()
        if (side := distribution.edge(best[key])) is not None
    ]


def importance(sweep: Sweep) -> dict[str, float]:
    """Shares of the metric's variance by functional ANOVA (Hutter et al., 2014); none if trials are few."""
    values = [trial.value for trial in sweep.counted() if trial.state == TrialState.COMPLETE]
    if len(values) < ENOUGH or len(set(values)) < 2:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    shares = optuna.importance.get_param_importances(sweep.study, evaluator=evaluator)
    return {key: float(share) for key, share in shares.items()}


def scales(sweep: Sweep) -> dict[str, Scale]:
    found: dict[str, Scale] = {}
    for key, distribution in sweep.file.parameters.items():
        match distribution:
            case LogUniform() | LogNormal() | Stepped(of=LogUniform()):
                found[key] = "log"
            case Listed(options=options) if not all(isinstance(each, int | float) for each in options):
                found[key] = "choice"
            case _:
                found[key] = "linear"
    return found


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
