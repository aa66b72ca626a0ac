"""What a sweep found: trials ranked by what one chooses a model by, the best spec, and warnings."""

from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.trial import FrozenTrial, TrialState

from attnlab.runs import describe_environment
from attnlab.spec import to_json
from attnlab.storage import write_json
from attnlab.studies.jobs import pool_run
from attnlab.studies.measures import EXACT_MATCH, STEPS_TO_99
from attnlab.studies.study import Study
from attnlab.studies.sweeps.folder import FORMAT
from attnlab.studies.sweeps.ranges import LogNormal, LogUniform, Stepped
from attnlab.studies.sweeps.ranking import describe_trial, rank
from attnlab.studies.sweeps.search import Sweep
from attnlab.studies.sweeps.space import Choice, Distribution, WeightedChoice
from attnlab.studies.tables import Table, show_value

Scale = Literal["linear", "log", "choice"]
ENOUGH = 10  # finished trials below which importances mean nothing


def collect_sweep(sweep: Sweep, pool: Path, *, command: str) -> dict[str, Any]:
    """The outcome as JSON; all that depends on the clock is under ``timings``."""
    metric, counted = sweep.file.metric, sweep.counted()
    trials = [describe_trial(sweep, trial, pool) for trial in counted]
    finished = [trial for trial in trials if trial["state"] == "finished"]
    ranked = sorted(finished, key=lambda trial: rank(trial, metric.goal))
    best = ranked[0] if ranked else None
    return {
        "format": FORMAT,
        "sweep": sweep.file.name,
        "command": command,
        "environment": describe_environment(),
        "method": sweep.file.method,
        "metric": {"name": metric.name, "goal": metric.goal},
        "searched": {key: each.describe() for key, each in sweep.file.parameters.items()},
        "ended": sweep.ended,
        "ranking": [trial["number"] for trial in ranked],
        "best": best,
        "edges": [] if best is None else edges(sweep, best["parameters"]),
        "importance": importance(sweep),
        "trials": trials,
        "skipped": [_skipped(trial) for trial in sweep.skipped()],
        "timings": {str(trial.number): _seconds(sweep, trial, pool) for trial in counted},
    }


def keep_sweep(sweep: Sweep, outcome: dict[str, Any]) -> None:
    """Write the outcome and the best spec into the sweep's folder."""
    write_json(sweep.folder / "trials.json", outcome)
    if outcome["best"] is not None:
        best = sweep.trials()[outcome["best"]["number"]]
        write_json(sweep.folder / "best.json", to_json(sweep.spec_of(best)))


def best_again(sweep: Sweep, outcome: dict[str, Any], *, count: int, seeds: int) -> Study:
    """The best specs with seeds that the search has not seen."""
    seen = [sweep.spec_of(trial).seed for trial in sweep.counted()]
    numbers = outcome["ranking"][:count]
    return Study(
        name="retrained",
        question=f"How good are the best {len(numbers)} specs of {sweep.file.name} with fresh seeds?",
        variants={f"trial {number}": sweep.spec_of(sweep.trials()[number]) for number in numbers},
        measures=(EXACT_MATCH, STEPS_TO_99),
        seeds=seeds,
        first_seed=max(seen) + 1,
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
            _number(trial["steps_to_converge"], "steps"),
            _number(trial["parameter_count"], "count"),
            *(_shown(trial["parameters"][key]) for key in keys),
        )
        for trial in (ranked + rest)[:rows]
    )
    return Table(f"{outcome['sweep']}: {len(outcome['trials'])} trials", columns, cells)


def _skipped(trial: FrozenTrial) -> dict[str, Any]:
    found = trial.user_attrs
    return {"number": trial.number, "reason": found["skipped"], "parameters": found["parameters"]}


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


def _number(value: int | float | None, unit: str) -> str:
    if value is not None and unit == "number":
        return f"{value:.5f}"
    return show_value(None if value is None else float(value), unit)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
