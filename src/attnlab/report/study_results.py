"""A study's result as a folder that is small enough to commit: numbers, table and picture.

study.json    every seed's value, means, intervals, differences, and what it was made with
study.md      the same as tables
study.svg     a dot for each seed
heads.svg     heads matched across seeds, where a study matches heads
curves.svg    values over lengths, say, where a study has curves
factors.svg   the mean of each cell and the parts of the variance, where a study crosses two factors

And the pictures of a sweep, beside the table they are drawn from.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.errors import RunError, SpecError
from attnlab.specs import from_json, to_json
from attnlab.storage import refusing, write_json, write_text
from attnlab.studies.outcome import FORMAT, StudyResult
from attnlab.studies.tables import markdown

if TYPE_CHECKING:
    from attnlab.studies.sweeps.parts import Scale, SweepResult

FILE = "study.json"


def write_results(result: StudyResult, folder: Path) -> None:
    from attnlab.figures import studies  # here: who only reads needs no pictures
    from attnlab.figures.patching import draw_grids
    from attnlab.figures.style import to_svg

    with refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE, result.to_json())
    write_text(folder / "study.md", f"# {result.study}\n\n{result.question}\n\n{markdown(result)}")
    drawn = {"study": studies.draw_seeds(studies.seeds_data(result))}
    if result.heads:
        drawn["heads"] = draw_grids(studies.matched_data(result.heads[0]))
    if result.curves:
        drawn["curves"] = studies.draw_variants(studies.variants_data(result))
    if result.factors:
        drawn["factors"] = studies.draw_factors(studies.factors_data(result))
    for name, figure in drawn.items():
        write_text(folder / f"{name}.svg", to_svg(figure))


def read_results(folder: Path) -> StudyResult | None:
    """The result that lies in ``folder``, or None if there is none."""
    path = folder / FILE
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        version = result["format"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is no study's result ({type(error).__name__}: {error})") from error
    if version != FORMAT:
        raise RunError(
            f"{path} has format {version!r}, but this version of attnlab reads format {FORMAT}; "
            "run the study again to write it anew"
        )
    try:
        return from_json(StudyResult, result, "it", extra=True)
    except SpecError as error:
        raise RunError(f"{path} is damaged: {error}") from error


def write_sweep_figures(outcome: "SweepResult", scales: "dict[str, Scale]", folder: Path) -> None:
    """History, parallel coordinates and importance of a sweep as SVG, each with its numbers as JSON."""
    from attnlab.figures import sweeps
    from attnlab.figures.style import to_svg

    history = sweeps.history_data(outcome.trials, outcome.metric)
    best = None if outcome.best is None else outcome.best.number  # of equal values, the ranking's first
    parallel = sweeps.parallel_data(outcome.trials, outcome.metric, scales=scales, best=best)
    important = sweeps.importance_data(outcome.importance, metric=outcome.metric.name)
    for name, data, figure in (
        ("history", history, sweeps.draw_history(history)),
        ("parallel", parallel, sweeps.draw_parallel(parallel)),
        ("importance", important, sweeps.draw_importance(important)),
    ):
        write_text(folder / f"{name}.svg", to_svg(figure))
        write_json(folder / f"{name}.json", to_json(data))
