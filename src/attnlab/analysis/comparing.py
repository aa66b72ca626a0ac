"""Two runs side by side: what differs in their specs, and which of them answers the same examples better.

Both are asked the same test examples, so the answers are paired. With b examples that only the first has
right, c that only the second has, and n in all, the difference of their shares is (b - c) / n, and

    interval   Bonett and Price (2012): with p = (b + 1) / (n + 2) and q = (c + 1) / (n + 2)
               p - q +- 1.96 sqrt((p + q - (p - q)^2) / (n + 2))
    p value    McNemar's test (1947), exact: of b + c examples on which they differ, b or a split still
               more uneven, were both ways as likely

Groups of examples have p values adjusted by Holm's method. The test examples are those of the first run;
sums that the second has learned from are left out.
"""

from math import sqrt
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlab.analysis.image_classifier import ImageClassifier, image_classifier
from attnlab.analysis.seeds import holm
from attnlab.analysis.subjects import Subject, answers_to, subject_of
from attnlab.errors import InputError
from attnlab.examples import Examples
from attnlab.problems.addition import Addition
from attnlab.problems.sorting import Sorting
from attnlab.progress import Progress, silent
from attnlab.runs import Run, load_addition, load_model
from attnlab.spec import Spec, to_json

ALL = "all examples"
_WIDTH = 1.959963984540054  # of a 95% interval, in standard errors

Right = Bool[Tensor, "N"]


def spec_differences(first: Spec, second: Spec) -> list[dict[str, Any]]:
    """Keys at which two specs differ, with both values; None where one has no such key."""
    mine, other = _flat(to_json(first)), _flat(to_json(second))
    return [
        {"key": key, "values": [mine.get(key), other.get(key)]}
        for key in dict.fromkeys((*mine, *other))
        if mine.get(key) != other.get(key)
    ]


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {path: value}
    found: dict[str, Any] = {}
    for key, inner in value.items():
        found |= _flat(inner, f"{path}.{key}" if path else key)
    return found


def paired(first: Right, second: Right) -> dict[str, Any]:
    """The difference of two shares on the same examples, its interval, and McNemar's p."""
    from scipy.stats import binomtest  # here: it takes half a second to import

    count = len(first)
    b, c = int((first & ~second).sum()), int((second & ~first).sum())
    p, q = (b + 1) / (count + 2), (c + 1) / (count + 2)
    half = _WIDTH * sqrt(max(0.0, p + q - (p - q) ** 2) / (count + 2))
    return {
        "examples": count,
        "right": [int(first.sum()) / count, int(second.sum()) / count],
        "only_first": b,
        "only_second": c,
        "difference": (b - c) / count,
        "interval": [max(-1.0, p - q - half), min(1.0, p - q + half)],
        "p": float(binomtest(min(b, c), b + c, 0.5).pvalue) if b + c else 1.0,
    }


def compare_answers(first: Run, second: Run, *, progress: Progress = silent) -> dict[str, Any]:
    """Both runs on the same test examples, as a whole and by group; ``why_not`` if there are none."""
    why = why_not_paired(first.spec(), second.spec())
    if why is not None:
        return {"why_not": why, "whole": None, "groups": []}
    ours, theirs, groups = _answers(first, second, progress)
    rows = [
        {"group": name, **paired(ours[group], theirs[group])}
        for name, group in groups.items()
        if group.any()
    ]
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
    return {"why_not": None, "whole": {"group": ALL, **paired(ours, theirs)}, "groups": rows}


def why_not_paired(first: Spec, second: Spec) -> str | None:
    """Why two runs cannot be asked the same examples; None if they can."""
    if type(first.task) is not type(second.task):
        return f"one has the task {first.task.kind}, the other {second.task.kind}"
    for key in first.task.paired_by:
        mine, other = getattr(first.task, key), getattr(second.task, key)
        if mine != other:
            return f"task.{key} is {mine!r} in one and {other!r} in the other"
    return None


def _answers(first: Run, second: Run, progress: Progress) -> tuple[Right, Right, dict[str, Right]]:
    spec, other = first.spec(), second.spec()
    if isinstance(spec.task, Addition):
        task, model = load_addition(first)
        *_, test = task.split_pairs(spec.seed)
        second_task, second_model = load_addition(second)
        learned, watched, _ = second_task.split_pairs(other.seed)
        pairs = test[~_among(test, torch.cat((learned, watched)))]
        if not len(pairs):
            raise InputError(f"{second.name} has learned from every test sum of {first.name}")
        one, two = (
            subject_of(task, model, task.examples(pairs)),
            subject_of(second_task, second_model, second_task.examples(pairs)),
        )
        return _exact(one, two, progress)
    if spec.task.images:
        return _images(image_classifier(first), image_classifier(second), progress)
    every = spec.task.splits(spec.seed).test
    if not isinstance(spec.task, Sorting):  # lists hardly ever come twice
        every = _unknown_to(other, every)
        if not len(every):
            raise InputError(f"{second.name} has learned from every test example of {first.name}")
    one, two = (subject_of(spec.task, load_model(run), every) for run in (first, second))
    return _exact(one, two, progress)


def _unknown_to(spec: Spec, examples: Examples) -> Examples:
    """Those whose input an experiment has neither learned from nor been chosen by."""
    splits = spec.task.splits(spec.seed)
    known = {tuple(row) for part in (splits.train, splits.valid) for row in part.inputs[0].tolist()}
    return examples[torch.tensor([tuple(row) not in known for row in examples.inputs[0].tolist()])]


def _exact(one: Subject, two: Subject, progress: Progress) -> tuple[Right, Right, dict[str, Right]]:
    progress(0, 2)
    ours = answers_to(one).exact
    progress(1, 2)
    theirs = answers_to(two).exact
    progress(2, 2)
    return ours, theirs, one.strata


def _images(
    one: ImageClassifier, two: ImageClassifier, progress: Progress
) -> tuple[Right, Right, dict[str, Right]]:
    images = one.images("test")
    count = len(images.truth)
    ours = one.predict_proba(images.pixels, progress=lambda done, _: progress(done, 2 * count))
    theirs = two.predict_proba(images.pixels, progress=lambda done, _: progress(count + done, 2 * count))
    right = [(said.argmax(dim=-1) == images.truth).all(dim=1) for said in (ours, theirs)]
    if images.truth.shape[1] == 1:
        groups = {f"digit {digit}": images.truth[:, 0] == digit for digit in range(10)}
    else:
        groups = {f"with a {digit}": (images.truth == digit).any(dim=1) for digit in range(10)}
    return right[0], right[1], groups


def _among(pairs: Int[Tensor, "N 2"], known: Int[Tensor, "M 2"]) -> Bool[Tensor, "N"]:
    """Which pairs are known, in either order."""
    limit = int(max(pairs.max(), known.max())) + 1 if len(known) else 1
    codes = [each.amin(dim=1) * limit + each.amax(dim=1) for each in (pairs, known)]
    return torch.isin(codes[0], codes[1])
