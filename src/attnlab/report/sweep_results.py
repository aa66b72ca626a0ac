"""A sweep's pictures, beside the table they are drawn from."""

from pathlib import Path

from attnlab.figures.style import to_svg
from attnlab.figures.sweeps import (
    draw_history,
    draw_importance,
    draw_parallel,
    history_data,
    importance_data,
    parallel_data,
)
from attnlab.spec import to_json
from attnlab.storage import write_json, write_text
from attnlab.studies.sweeps.parts import Scale, SweepResult


def write_sweep_figures(outcome: SweepResult, scales: dict[str, Scale], folder: Path) -> None:
    """History, parallel coordinates and importance as SVG, each with its numbers as JSON."""
    history = history_data(outcome.trials, outcome.metric)
    best = None if outcome.best is None else outcome.best.number  # of equal values, the ranking's first
    parallel = parallel_data(outcome.trials, outcome.metric, scales=scales, best=best)
    important = importance_data(outcome.importance, metric=outcome.metric.name)
    for name, data, figure in (
        ("history", history, draw_history(history)),
        ("parallel", parallel, draw_parallel(parallel)),
        ("importance", important, draw_importance(important)),
    ):
        write_text(folder / f"{name}.svg", to_svg(figure))
        write_json(folder / f"{name}.json", to_json(data))
