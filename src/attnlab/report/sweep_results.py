"""A sweep's pictures, beside the table they are drawn from."""

from pathlib import Path
from typing import Any

from attnlab.figures import (
    draw_history,
    draw_importance,
    draw_parallel,
    history_data,
    importance_data,
    parallel_data,
    to_svg,
)
from attnlab.storage import write_json, write_text
from attnlab.studies.sweeps.outcome import Scale


def write_sweep_figures(outcome: dict[str, Any], scales: dict[str, Scale], folder: Path) -> None:
    """History, parallel coordinates and importance as SVG, each with its numbers as JSON."""
    trials, metric, goal = outcome["trials"], outcome["metric"]["name"], outcome["metric"]["goal"]
    history = history_data(trials, goal=goal, metric=metric)
    parallel = parallel_data(trials, scales=scales, goal=goal, metric=metric)
    if (best := outcome["best"]) is not None:  # of equal values, the ranking's first
        parallel["best"] = {"number": best["number"], "value": best["value"]}
    important = importance_data(outcome["importance"], metric=metric)
    for name, data, figure in (
        ("history", history, draw_history(history)),
        ("parallel", parallel, draw_parallel(parallel)),
        ("importance", important, draw_importance(important)),
    ):
        write_text(folder / f"{name}.svg", to_svg(figure))
        write_json(folder / f"{name}.json", data)
