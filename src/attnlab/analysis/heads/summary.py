"""What ``attnlab heads`` finds: for every head and metric the mean, its interval, and uniform attention.

Sums are measured by teacher forcing: the decoder is fed the true digits, which are its own ones wherever it
is right. A metric that does not apply to an attention is absent there, not zero.
"""

from typing import Any

import torch

from attnlab.analysis.evaluation import Split
from attnlab.analysis.heads.measuring import Sums, measure_heads
from attnlab.analysis.heads.resampling import mean_intervals
from attnlab.analysis.heads.sets import KeySets, kind_of
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.subjects import Subject, load_subject
from attnlab.models import attentions
from attnlab.progress import Progress, silent
from attnlab.runs import Run, save_if_larger

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


def describe_heads(
    subject: Subject, sets: KeySets | None = None, *, progress: Progress = silent
) -> dict[str, Any]:
    """Every head of the subject's model; ``sets`` name further keys to look for."""
    with one_thread():
        measured = measure_heads(subject, sets or {}, progress=progress)
        cells = _cells(measured, subject.places)
    rows = [
        {
            "head": f"{path}.{index}",
            "kind": " ".join(dict.fromkeys(kind_of(path))),
            "metrics": {name: cells[path, name][index] for name in metrics if (path, name) in cells},
        }
        for path, metrics in measured.items()
        for index in range(attentions(subject.model)[path].heads)
    ]
    found = {name for _, name in cells}
    own = [name for metrics in measured.values() for name in metrics if name not in METRICS]
    return {
        "examples": len(subject.examples),
        "metrics": {
            **{name: what for name, what in METRICS.items() if name in found},
            **{name: f"weight on {name}" for name in own if name in found},
        },
        "places": subject.places,
        "heads": rows,
    }


def heads_run(
    run: Run, *, split: Split = "valid", count: int = 2000, progress: Progress = silent
) -> dict[str, Any]:
    """Every head of a run on examples of a split; kept in the run, unless more examples are kept there."""
    return _measured(run, load_subject(run, split=split, count=count), split, progress)


def kept_heads(run: Run, *, count: int) -> dict[str, Any]:
    """Every head on ``count`` validation examples: what is kept if it is of as many, or measured now."""
    kept, subject = run.analysis("heads-valid"), load_subject(run, split="valid", count=count)
    if kept is not None and kept["examples"] >= len(subject.examples):
        return kept
    return _measured(run, subject, "valid", silent)


def _measured(run: Run, subject: Subject, split: Split, progress: Progress) -> dict[str, Any]:
    sets = run_sets(run, subject)
    found = {"run": run.name, "split": split, **describe_heads(subject, sets, progress=progress)}
    save_if_larger(run, f"heads-{split}", found, "examples")
    return found


def run_sets(run: Run, subject: Subject) -> KeySets:
    """The sets of keys that mean something in the run's task."""
    spec = run.spec()
    return spec.task.key_sets(subject.examples, spec.model)


def strongest(found: dict[str, Any]) -> list[dict[str, Any]]:
    """For each set of keys and each kind of attention the head that puts most weight there."""
    kinds = list(dict.fromkeys(row["kind"] for row in found["heads"]))
    best = []
    for name in (name for name in found["metrics"] if name not in SHAPES):
        for kind in kinds:
            rows = [row for row in found["heads"] if row["kind"] == kind and name in row["metrics"]]
            if rows:
                most = max(rows, key=lambda row: float(row["metrics"][name]["value"]))
                best.append({"metric": name, "kind": kind, "head": most["head"], **most["metrics"][name]})
    return best


def _cells(
    measured: dict[str, dict[str, Sums]], places: list[str]
) -> dict[tuple[str, str], list[dict[str, Any]]]:
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
    cells = (
        {"value": value, "interval": interval if count > 1 else None, "uniform": flat, "examples": count}
        for value, interval, flat, count in columns
    )
    return {
        (path, name): [
            {**next(cells), **_by_place(path, sums, index, places)} for index in range(sums.rows.shape[1])
        ]
        for (path, name), sums in every.items()
    }


def _by_place(path: str, sums: Sums, index: int, places: list[str]) -> dict[str, dict[str, float]]:
    """In a decoder, whose rows are the target's places: the mean of each row that counts."""
    counts = sums.row_counts[index]
    if kind_of(path)[0] != "decoder" or len(places) != len(counts):
        return {}
    means = (sums.by_row[index] / counts).tolist()
    known = (counts > 0).tolist()
    return {
        "by_place": {place: mean for place, mean, there in zip(places, means, known, strict=True) if there}
    }
