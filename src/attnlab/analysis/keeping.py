"""Analyses of a run that are kept in its folder, so that nobody has to repeat them."""

from typing import Any

from attnlab.analysis.evaluation import Split, evaluate, evaluate_task
from attnlab.analysis.falls import measure_falls
from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.image_evaluation import evaluate_reader
from attnlab.analysis.lengths import STUDIED, lengths_run
from attnlab.analysis.margins import measure_margins
from attnlab.analysis.matching import behaviour_run
from attnlab.analysis.sorting import evaluate_sorting
from attnlab.analysis.verification import verify
from attnlab.analysis.views import MOVES, measure_views
from attnlab.errors import SpecError
from attnlab.problems.addition import Addition
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.progress import Progress, silent
from attnlab.runs import Run, load_addition, load_model, load_sorting
from attnlab.storage import write_text

WRONG = "analysis/verify-wrong.csv"
"""Where a run keeps every wrong pair."""


def analyse_run(run: Run, analysis: str, *, progress: Progress = silent) -> dict[str, Any]:
    """What ``analysis`` finds: what the folder holds already, or fresh."""
    kept = run.analysis(analysis)
    if kept is not None:
        return kept
    match analysis:
        case "evaluate-valid":
            return evaluate_run(run, "valid", progress=progress)
        case "evaluate-test":
            return evaluate_run(run, "test", progress=progress)
        case "verify":
            return verify_run(run, progress=progress)
        case "behaviour":
            return behaviour_run(run, progress=progress).to_json()
        case "lengths":
            return lengths_run(run, progress=progress)
        case "lengths-factorial" | "lengths-256" | "lengths-1024" | "lengths-4096" | "lengths-16384":
            lengths, examples = STUDIED[analysis]
            return lengths_run(run, lengths=lengths, examples=examples, keep=analysis, progress=progress)
        case "margins":
            return _keep(run, analysis, measure_margins(*load_sorting(run), progress=progress))
        case "falls":
            return _keep(run, analysis, measure_falls(*load_sorting(run), progress=progress))
        case "views":
            measured = measure_views(image_classifier(run), "test", len(MOVES), progress=progress)
            return _keep(run, analysis, measured)
        case _:
            raise SpecError(f"{analysis!r} is no analysis that a run keeps")


def evaluate_run(run: Run, split: Split = "test", *, progress: Progress = silent) -> dict[str, Any]:
    """Measure ``run`` on a split and keep what was found."""
    return _keep(run, f"evaluate-{split}", _evaluated(run, split, progress))


def _keep(run: Run, name: str, measured: dict[str, Any]) -> dict[str, Any]:
    found = {"run": run.name, **measured}
    run.keep_analysis(name, found)
    return found


def _evaluated(run: Run, split: Split, progress: Progress) -> dict[str, Any]:
    spec = run.spec()
    match spec.task:
        case Addition():
            return evaluate(*load_addition(run), seed=spec.seed, split=split)
        case Digits() | Grids():
            return evaluate_reader(image_classifier(run), split, progress=progress)
        case Sorting():
            return evaluate_sorting(*load_sorting(run), seed=spec.seed, split=split)
        case task:
            examples = task.splits(spec.seed)[split]
            return {"split": split, **evaluate_task(task, load_model(run), examples, progress=progress)}


def verify_run(run: Run, *, progress: Progress = silent) -> dict[str, Any]:
    """Decode every pair, keep what was counted and, beside it, every wrong pair."""
    task, model = load_addition(run)
    counted, wrong = verify(task, model, seed=run.spec().seed, progress=progress)
    found = {"run": run.name, **counted}
    if run.keep_analysis("verify", found) is not None:
        write_text(run.file(WRONG), "a,b\n" + "".join(f"{a},{b}\n" for a, b in wrong.tolist()))
    return found
