"""Analyses of a run by their names, kept in its folder so that nobody has to repeat them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attnlab.analysis.evaluate import evaluate_run
from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.image_evaluation import evaluate_images
from attnlab.analysis.matching import behaviour_run
from attnlab.analysis.views import MOVES, measure_views
from attnlab.errors import SpecError, nearest
from attnlab.progress import Progress, silent
from attnlab.runs import Run
from attnlab.spec import Split


def analyse_run(run: Run, analysis: str, *, progress: Progress = silent) -> None:
    """Make ``analysis`` of ``run``, unless the folder holds it already."""
    if run.analysis(analysis) is None:
        find_analysis(run, analysis)(run, progress=progress)


def find_analysis(run: Run, name: str) -> Callable[..., Any]:
    """What can be asked of ``run`` by this name."""
    known = analyses(run)
    if name not in known:
        raise SpecError(f"{name!r} is no analysis that a run keeps{nearest(name, known)}")
    return known[name]


def analyses(run: Run) -> Mapping[str, Callable[..., Any]]:
    """What can be asked of ``run``: the same of all runs, and what its task adds."""
    task = run.spec().task
    every: dict[str, Callable[..., Any]] = {
        "evaluate-valid": partial(_evaluate, split="valid"),
        "evaluate-test": partial(_evaluate, split="test"),
        "behaviour": behaviour_run,
    }
    return {**every, **({"views": _views} if task.images else {}), **task.analyses()}


def _evaluate(run: Run, *, split: Split, progress: Progress) -> None:
    (evaluate_images if run.spec().task.images else evaluate_run)(run, split, progress=progress)


def _views(run: Run, *, progress: Progress) -> None:
    measured = measure_views(image_classifier(run), "test", len(MOVES), progress=progress)
    run.keep_analysis("views", {"run": run.name, **measured})
