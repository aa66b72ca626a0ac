"""Analyses of a run by their names, kept in its folder so that nobody has to repeat them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from attnlab.analysis.evaluate import evaluate_run
from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.image_evaluation import MOVES, evaluate_images, measure_views
from attnlab.analysis.matching import behaviour_run
from attnlab.errors import SpecError, nearest
from attnlab.progress import Progress, silent
from attnlab.runs import RunFolder
from attnlab.spec import Split


def analyse_run(run: RunFolder, analysis: str, *, progress: Progress = silent) -> None:
    """Make ``analysis`` of ``run``, unless the folder holds it already."""
    if run.analysis(analysis) is None:
        find_analysis(run, analysis)(run, progress=progress)


def find_analysis(run: RunFolder, name: str) -> Callable[..., Any]:
    """What can be asked of ``run`` by this name: the same of all runs, and what its task adds."""
    task = run.spec().task
    known: dict[str, Callable[..., Any]] = {
        "evaluate-valid": partial(_evaluate, split="valid"),
        "evaluate-test": partial(_evaluate, split="test"),
        "behaviour": behaviour_run,
        **({"views": _views} if task.images else {}),
        **task.analyses(),
    }
    if name not in known:
        raise SpecError(f"{name!r} is no analysis that a run keeps{nearest(name, known)}")
    return known[name]


def _evaluate(run: RunFolder, *, split: Split, progress: Progress) -> None:
    (evaluate_images if run.spec().task.images else evaluate_run)(run, split, progress=progress)


def _views(run: RunFolder, *, progress: Progress) -> None:
    reader = image_classifier(run)
    run.keep("views", measure_views(reader, "test", len(MOVES), run=run.name, progress=progress))
