"""What ``attnlab heads`` finds: for every head and metric the mean, its interval, and uniform attention.

Sums are measured by teacher forcing: the decoder is fed the true digits, which are its own ones wherever it
is right. A metric that does not apply to an attention is absent there, not zero.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch

from attnlab.analysis.heads.measuring import Sums, measure_heads
from attnlab.analysis.heads.resampling import mean_intervals
from attnlab.analysis.heads.sets import KeySets, kind_of
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.subjects import Subject, load_subject
from attnlab.models import attentions
from attnlab.progress import Progress, silent
from attnlab.results import Interval, Result
from attnlab.runs import Run, save_if_larger
from attnlab.spec import Split
from attnlab.spec.codec import later

METRICS = {
    "entropy": "entropy of a row, 1 = uniform",
    "entropy_nats": "entropy of a row in nats",
    "sparsity": "0 = uniform, 1 = all weight on one key",
    "diagonal": "weight on the own token",
    "previous": "weight on the token before",
    "next": "weight on the token after",
    "wrong_side": "weight on numbers that stand on the wrong side",
    "column": "weight on the digits of the row's column",
    "partner": "weight on the other operand's digit of the own column",
    "carry": "weight on the columns that decide whether a carry arrives",
    "carry_in": "weight on these columns where a carry arrives",
    "no_carry_in": "weight on these columns where none arrives",
    "operator": "weight on the +",
    "cell": "weight on the own digit's cell",
}
"""Our metrics and what they are; a set of keys of a user's own goes by the name it was given."""

SHAPES = ("entropy", "entropy_nats", "sparsity")
"""Metrics that are no weight on a set of keys."""


@dataclass(frozen=True)
class Metric:
    """A mean over the examples that have such rows, and what uniform attention would have."""

    value: float
    interval: Interval | None
    uniform: float
    examples: int
    by_place: dict[str, float] | None = later(None)
    """Of a decoder: the mean at each place of the answer."""


@dataclass(frozen=True)
class MeasuredHead:
    """One head; a metric that does not apply to it is absent."""

    head: str
    kind: str
    metrics: dict[str, Metric]


@dataclass(frozen=True)
class Strongest:
    """The head of a kind of attention that puts most weight on a set of keys."""

    metric: str
    kind: str
    head: str
    weight: Metric


@dataclass(frozen=True, kw_only=True)
class HeadsResult(Result):
    """Where every head looks. ``metrics`` says what each metric is; ``run`` and ``split`` are a run's."""

    run: str = later("")
    split: Split | None = later(None)
    examples: int
    metrics: dict[str, str]
    places: list[str]
    heads: list[MeasuredHead]

    @property
    def kinds(self) -> dict[str, list[MeasuredHead]]:
        """Heads by the kind of their attention."""
        names = dict.fromkeys(row.kind for row in self.heads)
        return {kind: [row for row in self.heads if row.kind == kind] for kind in names}


def describe_heads(
    subject: Subject, sets: KeySets | None = None, *, progress: Progress = silent
) -> HeadsResult:
    """Every head of the subject's model; ``sets`` name further keys to look for."""
    with one_thread():
        measured = measure_heads(subject, sets or {}, progress=progress)
        cells = _cells(measured, subject.places)
    rows = [
        MeasuredHead(
            head=f"{path}.{index}",
            kind=" ".join(dict.fromkeys(kind_of(path))),
            metrics={name: cells[path, name][index] for name in metrics if (path, name) in cells},
        )
        for path, metrics in measured.items()
        for index in range(attentions(subject.model)[path].heads)
    ]
    found = {name for _, name in cells}
    own = [name for metrics in measured.values() for name in metrics if name not in METRICS]
    return HeadsResult(
        examples=len(subject.examples),
        metrics={
            **{name: what for name, what in METRICS.items() if name in found},
            **{name: f"weight on {name}" for name in own if name in found},
        },
        places=subject.places,
        heads=rows,
    )


def heads_run(
    run: Run, *, split: Split = "valid", count: int = 2000, progress: Progress = silent
) -> HeadsResult:
    """Every head of a run on examples of a split; kept in the run, unless more examples are kept there."""
    return _measured(run, load_subject(run, split=split, count=count), split, progress)


def kept_heads(run: Run, *, count: int) -> HeadsResult:
    """Every head on ``count`` validation examples: what is kept if it is of as many, or measured now."""
    kept, subject = run.kept("heads-valid", HeadsResult), load_subject(run, split="valid", count=count)
    if kept is not None and kept.examples >= len(subject.examples):
        return kept
    return _measured(run, subject, "valid", silent)


def _measured(run: Run, subject: Subject, split: Split, progress: Progress) -> HeadsResult:
    measured = describe_heads(subject, run_sets(run, subject), progress=progress)
    found = replace(measured, run=run.name, split=split)
    save_if_larger(run, f"heads-{split}", found, "examples")
    return found


def run_sets(run: Run, subject: Subject) -> KeySets:
    """The sets of keys that mean something in the run's task."""
    spec = run.spec()
    return spec.task.key_sets(subject.examples, spec.model)


def strongest(found: HeadsResult) -> list[Strongest]:
    """For each set of keys and each kind of attention the head that puts most weight there."""
    best = []
    for name in weights_of(found):
        for kind, rows in found.kinds.items():
            known = [row for row in rows if name in row.metrics]
            if known:
                most = max(known, key=lambda row: row.metrics[name].value)
                best.append(Strongest(name, kind, most.head, most.metrics[name]))
    return best


def weights_of(found: HeadsResult) -> Iterable[str]:
    """The metrics that are a weight on a set of keys."""
    return (name for name in found.metrics if name not in SHAPES)


def _cells(measured: dict[str, dict[str, Sums]], places: list[str]) -> dict[tuple[str, str], list[Metric]]:
    """For each attention and metric the heads' means; absent where there is no row to look at."""
    every = {
        (path, name): sums
        for path, metrics in measured.items()
        for name, sums in metrics.items()
        if sums.rows.sum() > 0
    }
    heads, uniform, rows = (
        torch.cat([getattr(sums, field) for sums in every.values()], dim=1)
        for field in ("heads", "uniform", "rows")
    )
    total = rows.sum(dim=0)
    columns = zip(
        (heads.sum(dim=0) / total).tolist(),
        mean_intervals(heads, rows).tolist(),
        (uniform.sum(dim=0) / total).tolist(),
        (rows > 0).sum(dim=0).tolist(),
        strict=True,
    )

    def cell(path: str, sums: Sums, index: int) -> Metric:
        value, (low, high), flat, count = next(columns)
        by_place = _by_place(path, sums, index, places)
        return Metric(value, (low, high) if count > 1 else None, flat, count, by_place)

    return {
        (path, name): [cell(path, sums, index) for index in range(sums.rows.shape[1])]
        for (path, name), sums in every.items()
    }


def _by_place(path: str, sums: Sums, index: int, places: list[str]) -> dict[str, float] | None:
    """In a decoder, whose rows are the target's places: the mean of each row that counts."""
    counts = sums.row_counts[index]
    if kind_of(path)[0] != "decoder" or len(places) != len(counts):
        return None
    means = (sums.by_row[index] / counts).tolist()
    known = (counts > 0).tolist()
    return {place: mean for place, mean, there in zip(places, means, known, strict=True) if there}
