"""Two runs side by side: what differs in their specs, and which of them answers the same examples better.

Both are asked the same test examples, so the answers are paired. With b examples that only the first has
right, c that only the second has, and n in all, the difference of their shares is (b - c) / n, and

    interval   Bonett and Price (2012): with p = (b + 1) / (n + 2) and q = (c + 1) / (n + 2)
               p - q +- 1.96 sqrt((p + q - (p - q)^2) / (n + 2))
    p value    McNemar's test (1947), exact: of b + c examples on which they differ, b or a split still
               more uneven, were both ways as likely

Groups of examples have p values adjusted by Holm's method. The test examples are those of the first run;
those that the second has learned from are left out.
"""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

from jaxtyping import Bool
from torch import Tensor

from attnlab.analysis.heads import heads_run, strongest
from attnlab.analysis.image_classifier import ImageClassifier, image_classifier
from attnlab.analysis.statistics import holm
from attnlab.analysis.subjects import score
from attnlab.errors import InputError, brief
from attnlab.model import attentions
from attnlab.progress import Progress, silent
from attnlab.results import Interval, Result, Row, interval_columns
from attnlab.runs import RunFolder
from attnlab.specs import Spec, to_json
from attnlab.specs.codec import later

ALL = "all examples"
_WIDTH = 1.959963984540054  # of a 95% interval, in standard errors

Right = Bool[Tensor, "N"]


@dataclass(frozen=True)
class RunSummary:
    """How large a run is and how it trained."""

    run: str
    task: str
    model: str
    parameters: int | None
    steps: int | None
    seconds: float | None
    valid: float | None
    valid_loss: float | None


@dataclass(frozen=True)
class SpecDifference:
    """A key at which two specs differ, with both values; None where one has no such key."""

    key: str
    values: list[Any]


@dataclass(frozen=True)
class PairedShares:
    """Two runs on the same examples; ``difference`` is the first minus the second."""

    group: str
    examples: int
    right: list[float]
    only_first: int
    only_second: int
    difference: float
    interval: Interval
    p: float
    p_holm: float | None = later(None)


@dataclass(frozen=True)
class PairedAnswers:
    """All examples, and groups of them; ``why_not`` says why there are none."""

    why_not: str | None
    whole: PairedShares | None
    groups: list[PairedShares]


@dataclass(frozen=True)
class StrongestHead:
    """The head that puts most weight on a set of keys, and what even attention would put there."""

    head: str
    value: float
    uniform: float


@dataclass(frozen=True)
class HeadSummary:
    """How many heads, how even they are, and which puts most weight where."""

    count: int
    examples: int
    entropy: float
    sharpest: float
    strongest: dict[str, StrongestHead]


@dataclass(frozen=True, kw_only=True)
class Comparison(Result):
    """Two runs side by side; ``heads`` has None for a model without attention."""

    shown_by: ClassVar[str] = "attnlab.tables.compare"

    runs: list[RunSummary]
    spec: list[SpecDifference]
    answers: PairedAnswers
    heads: list[HeadSummary | None]

    def records(self) -> list[Row]:
        """A row for all examples and for each group of them; none if answers cannot be paired."""
        whole = self.answers.whole
        return [
            {
                "group": row.group,
                "examples": row.examples,
                **dict(zip(("first", "second"), row.right, strict=True)),
                "only_first": row.only_first,
                "only_second": row.only_second,
                "difference": row.difference,
                **interval_columns("difference", row.interval),
                "p": row.p,
                "p_holm": row.p_holm,
            }
            for row in ([] if whole is None else [whole, *self.answers.groups])
        ]


def compare_runs(
    first: RunFolder, second: RunFolder, *, samples: int, progress: Progress = silent
) -> Comparison:
    """Specs, training, answers to the same examples, and heads of both."""
    if samples < 1:
        raise InputError(f"samples is {samples}; it must be at least 1")
    mine, other = first.spec().task.kind, second.spec().task.kind
    if mine != other:
        raise InputError(
            f"run {first.name} does the task {brief(mine)}, run {second.name} {brief(other)}; compare two "
            "runs of the same task"
        )
    runs = (first, second)
    return Comparison(
        runs=[_summary(run) for run in runs],
        spec=spec_differences(first.spec(), second.spec()),
        answers=compare_answers(first, second, progress=progress),
        heads=[_heads(run, samples) for run in runs],
    )


def _summary(run: RunFolder) -> RunSummary:
    summary = run.summary() or {}
    epochs = run.metrics().epochs
    return RunSummary(
        run=run.name,
        task=run.spec().task.kind,
        model=run.spec().model.kind,
        parameters=summary.get("parameters"),
        steps=summary.get("steps"),
        seconds=summary.get("seconds"),
        valid=max((each.valid_exact_match for each in epochs), default=None),
        valid_loss=min((each.valid_loss for each in epochs), default=None),
    )


def _heads(run: RunFolder, samples: int) -> HeadSummary | None:
    if not attentions(run.model):
        return None
    found = heads_run(run, count=samples, reuse=True)
    entropies = [row.metrics["entropy"].value for row in found.heads]
    most: dict[str, StrongestHead] = {}
    for row in strongest(found):
        what = f"{row.kind}: {found.metrics[row.metric]}"
        most[what] = StrongestHead(row.head, row.weight.value, row.weight.uniform)
    mean = sum(entropies) / len(entropies)
    return HeadSummary(len(entropies), found.examples, mean, min(entropies), most)


def spec_differences(first: Spec, second: Spec) -> list[SpecDifference]:
    mine, other = _flat(to_json(first)), _flat(to_json(second))
    return [
        SpecDifference(key, [mine.get(key), other.get(key)])
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


def paired(first: Right, second: Right, group: str = ALL) -> PairedShares:
    """The difference of two shares on the same examples, its interval, and McNemar's p."""
    from scipy.stats import binomtest  # here: it takes half a second to import

    count = len(first)
    b, c = int((first & ~second).sum()), int((second & ~first).sum())
    p, q = (b + 1) / (count + 2), (c + 1) / (count + 2)
    half = _WIDTH * sqrt(max(0.0, p + q - (p - q) ** 2) / (count + 2))
    return PairedShares(
        group,
        count,
        right=[int(first.sum()) / count, int(second.sum()) / count],
        only_first=b,
        only_second=c,
        difference=(b - c) / count,
        interval=(max(-1.0, p - q - half), min(1.0, p - q + half)),
        p=float(binomtest(min(b, c), b + c, 0.5).pvalue) if b + c else 1.0,
    )


def compare_answers(first: RunFolder, second: RunFolder, *, progress: Progress = silent) -> PairedAnswers:
    """Both runs on the same test examples, as a whole and by group; ``why_not`` if there are none."""
    why = why_not_paired(first.spec(), second.spec())
    if why is not None:
        return PairedAnswers(why, None, [])
    asked = _images if first.spec().task.images else _tokens
    ours, theirs, groups = asked(first, second, progress)
    rows = [paired(ours[group], theirs[group], name) for name, group in groups.items() if group.any()]
    adjusted = [replace(row, p_holm=p) for row, p in zip(rows, holm([row.p for row in rows]), strict=True)]
    return PairedAnswers(None, paired(ours, theirs), adjusted)


def why_not_paired(first: Spec, second: Spec) -> str | None:
    """Why two runs cannot be asked the same examples; None if they can."""
    for key in first.task.paired_by:
        mine, other = getattr(first.task, key), getattr(second.task, key)
        if mine != other:
            return f"task.{key} is {mine!r} in one and {other!r} in the other"
    return None


def _tokens(
    first: RunFolder, second: RunFolder, progress: Progress
) -> tuple[Right, Right, dict[str, Right]]:
    spec, other = first.spec(), second.spec()
    every = spec.task.splits(spec.seed).test
    theirs, unseen = other.task.unseen(every, spec.task, other.seed)
    if not unseen.any():
        raise InputError(f"{second.name} has learned from every test {spec.task.noun} of {first.name}")
    progress(0, 2)
    ours = score(first.model, every[unseen]).exact
    progress(1, 2)
    others = score(second.model, theirs[unseen]).exact
    progress(2, 2)
    return ours, others, spec.task.strata(every[unseen])


def _images(
    first: RunFolder, second: RunFolder, progress: Progress
) -> tuple[Right, Right, dict[str, Right]]:
    one, two = image_classifier(first), image_classifier(second)
    images = one.images("test")
    count = len(images.truth)

    def right(reader: ImageClassifier, done_before: int) -> Right:
        said = reader.predict_proba(
            images.pixels, progress=lambda done, _: progress(done_before + done, 2 * count)
        )
        return (said.argmax(dim=-1) == images.truth).all(dim=1)

    word = "digit" if images.truth.shape[1] == 1 else "with a"
    groups = {f"{word} {digit}": (images.truth == digit).any(dim=1) for digit in range(10)}
    return right(one, 0), right(two, count), groups
