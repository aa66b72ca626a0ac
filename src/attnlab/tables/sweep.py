"""What a sweep finds: ranked trials, which parameters matter, and warnings."""

from collections.abc import Iterator
from typing import Any

from attnlab.results import Drawing, Part, Table
from attnlab.studies.sweeps.parts import ENOUGH, SweepResult
from attnlab.tables.study import show_value

SHOWN = 20  # trials in the table


def tables(found: SweepResult) -> Iterator[Part]:
    yield trials_table(found, rows=SHOWN)
    if len(found.trials) > SHOWN:
        yield f"These are the best {SHOWN} of {len(found.trials)} trials."
    yield from remarks(found)
    if found.retrained is not None:
        yield from found.retrained.tables()


def figures(found: SweepResult) -> dict[str, Drawing]:
    from attnlab.figures import sweeps  # here: who only prints tables does not wait for them

    best = None if found.best is None else found.best.number  # of equal values, the ranking's first
    return {
        "history": Drawing(sweeps.history_data(found.trials, found.metric), sweeps.draw_history),
        "parallel": Drawing(
            sweeps.parallel_data(found.trials, found.metric, scales=found.scales or {}, best=best),
            sweeps.draw_parallel,
        ),
        "importance": Drawing(
            sweeps.importance_data(found.importance, metric=found.metric.name), sweeps.draw_importance
        ),
    }


def remarks(found: SweepResult) -> Iterator[str]:
    """What a reader must know beside the table."""
    if not found.complete:
        yield "The search was stopped before its end."
    if found.ended:
        yield f"The search ended early: {found.ended}."
    if found.skipped:
        yield f"{len(found.skipped)} combinations were impossible, such as: {found.skipped[0].reason}."
    yield from (f"Trial {trial.number} failed: {trial.error}." for trial in found.trials if trial.error)
    if found.importance:
        shares = ", ".join(f"{key} {100 * share:.0f}%" for key, share in found.importance.items())
        yield f"Importance (share of the variance, functional ANOVA): {shares}."
    else:
        yield f"Importance needs {ENOUGH} finished trials with different values."
    yield from (f"At the edge: {sentence}." for sentence in found.edges)


def trials_table(outcome: SweepResult, *, rows: int | None = None) -> Table:
    """The ranked trials, then those that did not finish."""
    by_number = {trial.number: trial for trial in outcome.trials}
    ranked = [by_number[number] for number in outcome.ranking]
    rest = [trial for trial in outcome.trials if trial.state != "finished"]
    unit = "number" if "loss" in outcome.metric.name else "share"
    keys = tuple(outcome.searched)
    columns = ("trial", "state", outcome.metric.name, "stability", "steps", "parameters", *keys)
    cells = tuple(
        (
            str(trial.number),
            trial.state,
            _number(trial.value, unit),
            _number(trial.stability, unit),
            _number(trial.steps_to_converge, "steps"),
            _number(trial.parameter_count, "count"),
            *(_shown(trial.parameters[key]) for key in keys),
        )
        for trial in (ranked + rest)[:rows]
    )
    return Table(f"{outcome.sweep}: {len(outcome.trials)} trials", columns, cells)


def _number(value: int | float | None, unit: str) -> str:
    if value is not None and unit == "number":
        return f"{value:.5f}"
    return show_value(None if value is None else float(value), unit)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
