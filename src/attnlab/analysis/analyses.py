"""Analyses of a run by their names, kept in its folder so that nobody has to repeat them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from attnlab.analysis.evaluate import Evaluation, evaluate_run
from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.image_evaluation import MOVES, ImageEvaluation, evaluate_images, measure_views
from attnlab.analysis.matching import behaviour_run
from attnlab.analysis.predict import Prediction, predict_lines
from attnlab.analysis.samples import expand, read_inputs
from attnlab.analysis.subjects import read_example
from attnlab.errors import InputError, SpecError, StorageError, brief, nearest
from attnlab.images import scaled
from attnlab.progress import Progress, silent
from attnlab.runs import RunFolder
from attnlab.sets import Examples
from attnlab.specs import Split


def analyse_run(run: RunFolder, analysis: str, *, progress: Progress = silent) -> None:
    """Make ``analysis`` of ``run``, unless the folder holds it already."""
    if run.analysis(analysis) is None:
        find_analysis(run, analysis)(run, progress=progress)
        if run.analysis(analysis) is None and not run.shipped:
            raise StorageError(f"what {analysis} found of run {run.path} could not be kept")


def find_analysis(run: RunFolder, name: str) -> Callable[..., Any]:
    """What can be asked of ``run`` by this name: the same of all runs, and what its task adds."""
    task = run.spec().task
    known: dict[str, Callable[..., Any]] = {
        "evaluate-valid": partial(evaluate_any, split="valid"),
        "evaluate-test": partial(evaluate_any, split="test"),
        "behaviour": behaviour_run,
        **({"views": _views} if task.images else {}),
        **task.analyses(),
    }
    if name not in known:
        raise SpecError(f"unknown analysis {brief(name)}{nearest(name, known)}")
    return known[name]


def evaluate_any(
    run: RunFolder, split: Split = "test", *, progress: Progress = silent
) -> Evaluation | ImageEvaluation:
    """Measure ``run`` on a split, whatever it is given, and keep the result."""
    found = evaluate_images if run.spec().task.images else evaluate_run
    return found(run, split, progress=progress)


def predict_inputs(run: RunFolder, inputs: Iterable[str]) -> Iterator[Prediction]:
    """What ``run`` answers to each input as its task writes it, a batch at a time."""
    spec = run.spec()
    return predict_lines(spec.task, run.model, inputs, partial(read_example, spec.task, spec.seed))


def examples_of(run: RunFolder, inputs: Sequence[str]) -> tuple[list[str], Examples]:
    """Inputs as people write them as examples, with their names; they must be equally long."""
    task = run.spec().task
    if task.images:
        reader = image_classifier(run)
        samples = read_inputs(reader, expand(inputs))
        pixels = torch.stack([each.pixels for each in samples])
        truth = torch.tensor([each.truth or each.answer for each in samples])
        targets = truth[:, 0] if task.start is None else truth
        return [each.name for each in samples], Examples(
            (scaled(pixels, reader.members[0].scale),), targets
        )
    names, examples = _parsed(run, inputs)
    if len({each.inputs[0].shape for each in examples}) > 1:
        raise InputError("the inputs have different lengths; ask for those of one length at a time")
    columns = zip(*(each.inputs for each in examples), strict=True)
    return names, Examples(tuple(map(torch.cat, columns)), torch.cat([each.targets for each in examples]))


def _parsed(run: RunFolder, inputs: Sequence[str]) -> tuple[list[str], list[Examples]]:
    if not inputs:
        raise InputError("there is nothing to answer; give at least one input")
    spec, examples = run.spec(), []
    for number, text in enumerate(inputs, start=1):
        try:
            examples.append(read_example(spec.task, spec.seed, text))
        except InputError as error:
            raise InputError(f"line {number}: {error}" if len(inputs) > 1 else str(error)) from error
    return [spec.task.show(each).name for each in examples], examples


def _views(run: RunFolder, *, progress: Progress) -> None:
    reader = image_classifier(run)
    run.keep("views", measure_views(reader, "test", len(MOVES), run=run.name, progress=progress))
