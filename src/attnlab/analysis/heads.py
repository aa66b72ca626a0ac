"""Where every head looks: for every head and metric the mean, its interval, and uniform attention.

With A the pattern of a head, n_t the number of keys that query t may see, and means over the rows t of all
examples:

    weight on a set    mean of the sum over keys s in the set of t of A[t, s]
    entropy            mean of - sum over s of A[t, s] ln A[t, s], divided by ln n_t: from 0 to 1
    entropy in nats    the same, not divided
    sparsity           mean of (sqrt(n_t) - 1 / |A[t]|) / (sqrt(n_t) - 1) with |.| the 2-norm (Hoyer, 2004):
                       0 if all visible keys get the same, 1 if one gets all

Uniform attention gives 1 / n_t to each visible key, so a set gets its share of the visible keys, entropy
is 1 and sparsity 0. A row that sees one key has nothing to choose and is left out; so is, for a set, a row
of whose set nothing is visible, and a row of padding.

Examples are measured by teacher forcing: the decoder is fed the true tokens, which are its own ones
wherever it is right. A metric that does not apply to an attention is absent there, not zero.

A set of keys is a mask (T, S), the same for all examples, or (N, T, S). Tasks name those that mean
something to them (``Task.key_sets``); two are there in every self attention: diagonal (s = t) and
previous (s = t - 1).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlab.analysis.parallel import one_thread
from attnlab.analysis.subjects import Subject, batch_size, batches, load_subject
from attnlab.model import Site
from attnlab.models import seen_keys
from attnlab.progress import Progress, silent
from attnlab.results import Interval, Result, Row, interval_columns
from attnlab.runs import RunFolder, save_if_larger
from attnlab.specs import Split
from attnlab.specs.codec import later
from attnlab.specs.task import KeySets
from attnlab.taps import record

RESAMPLES = 2000
_PART = 250  # resamples at a time

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
class Sums:
    """One metric of the heads of one attention, summed over the rows of each example.

    ``by_row`` and ``row_counts`` are summed over the examples of each row instead.
    """

    heads: Float[Tensor, "N H"]
    uniform: Float[Tensor, "N H"]
    rows: Float[Tensor, "N H"]
    by_row: Float[Tensor, "H T"]
    row_counts: Float[Tensor, "H T"]


@torch.inference_mode()
def measure_heads(
    subject: Subject, sets: KeySets, *, progress: Progress = silent
) -> dict[Site, dict[str, Sums]]:
    """Every metric of every attention."""
    parts: dict[Site, list[dict[str, Sums]]] = {site: [] for site in subject.model.sites()}
    done = 0
    size = batch_size(subject.model, subject.examples, "pattern", "scores")
    for batch in batches(subject.examples, subject.model, size):
        with record(subject.model, "*.pattern", "*.scores") as seen:
            subject.model(*batch.inputs)
        part, done = slice(done, done + len(batch)), done + len(batch)
        for site, found in parts.items():
            pattern = seen[f"{site.path}.pattern"].cpu().double()
            padded = subject.model.mask_at(site.path, *batch.inputs)
            visible = seen_keys(seen[f"{site.path}.scores"], padded).cpu()
            own = {**neighbours(site, *pattern.shape[-2:]), **sets.get((site.stack, site.kind), {})}
            masks = {name: mask if mask.dim() == 2 else mask[part, None] for name, mask in own.items()}
            found.append(_measure(pattern, visible, masks))
        progress(done, len(subject.examples))
    return {
        site: {name: _join([part[name] for part in found]) for name in found[0]}
        for site, found in parts.items()
    }


def _measure(
    pattern: Float[Tensor, "N H T S"], visible: Bool[Tensor, "N H T S"], sets: dict[str, Tensor]
) -> dict[str, Sums]:
    """Entropy, sparsity, and the weight on each of the ``sets`` (T, S) or (N, 1, T, S)."""
    seen = visible.sum(dim=-1).double()  # n_t
    free, one = seen > 1, torch.ones_like(seen)
    most, root = seen.clamp(min=2).log(), seen.clamp(min=2).sqrt()
    entropy = torch.special.entr(pattern).sum(dim=-1)
    norm = pattern.norm(dim=-1).clamp(min=1e-9)  # padding may see nothing at all
    found = {
        "entropy": _sums(entropy / most, one, free),
        "entropy_nats": _sums(entropy, most, free),
        "sparsity": _sums((root - 1 / norm) / (root - 1), 0 * one, free),
    }
    for name, mask in sets.items():
        within = mask & visible
        size = within.sum(dim=-1)
        found[name] = _sums((pattern * within).sum(dim=-1), size / seen.clamp(min=1), (size > 0) & free)
    return found


def _sums(
    rows: Float[Tensor, "N H T"], uniform: Float[Tensor, "N H T"], counted: Bool[Tensor, "N H T"]
) -> Sums:
    count = counted.double()
    return Sums(
        heads=(rows * count).sum(dim=-1),
        uniform=(uniform * count).sum(dim=-1),
        rows=count.sum(dim=-1),
        by_row=(rows * count).sum(dim=0),
        row_counts=count.sum(dim=0),
    )


def _join(parts: list[Sums]) -> Sums:
    return Sums(
        heads=torch.cat([part.heads for part in parts]),
        uniform=torch.cat([part.uniform for part in parts]),
        rows=torch.cat([part.rows for part in parts]),
        by_row=torch.stack([part.by_row for part in parts]).sum(dim=0),
        row_counts=torch.stack([part.row_counts for part in parts]).sum(dim=0),
    )


def neighbours(site: Site, queries: int, keys: int) -> dict[str, Bool[Tensor, "T S"]]:
    """Own and previous token, where queries and keys are the same tokens."""
    if queries != keys or site.kind == "cross":
        return {}
    back = torch.arange(queries)[:, None] - torch.arange(keys)
    return {"diagonal": back == 0, "previous": back == 1}


def mean_intervals(sums: Float[Tensor, "N M"], rows: Float[Tensor, "N M"]) -> Float[Tensor, "M 2"]:
    """Ends of the 95% interval of each column's mean; nan where fewer than two examples have rows."""
    counts, column = torch.unique(rows, dim=1, return_inverse=True)  # most columns have the same rows
    generator = torch.Generator().manual_seed(0)
    means = []
    for _ in range(RESAMPLES // _PART):
        drawn = draws(len(sums), _PART, generator)
        means.append((drawn @ sums) / (drawn @ counts)[:, column])
    ends = torch.cat(means).nanquantile(torch.tensor([0.025, 0.975], dtype=torch.double), dim=0).T
    return ends.masked_fill(((rows > 0).sum(dim=0) < 2)[:, None], torch.nan)


def draws(count: int, resamples: int, generator: torch.Generator) -> Float[Tensor, "R N"]:
    """How often each of ``count`` examples is drawn."""
    drawn = torch.randint(count, (resamples, count), generator=generator)
    ones = torch.ones(resamples, count, dtype=torch.double)
    return torch.zeros_like(ones).scatter_add_(1, drawn, ones)


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

    shown_by: ClassVar[str] = "attnlab.tables.heads"

    run: str = later("")
    split: Split | None = later(None)
    examples: int
    metrics: dict[str, str]
    places: list[str]
    heads: list[MeasuredHead]

    def records(self) -> list[Row]:
        """A row for each head and metric."""
        return [
            {
                "head": row.head,
                "kind": row.kind,
                "metric": name,
                "value": metric.value,
                **interval_columns("value", metric.interval),
                "uniform": metric.uniform,
                "examples": metric.examples,
            }
            for row in self.heads
            for name, metric in row.metrics.items()
        ]

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
        every = [
            (site, name, sums)
            for site, metrics in measured.items()
            for name, sums in metrics.items()
            if sums.rows.sum() > 0
        ]
        heads, uniform, rows = (
            torch.cat([getattr(sums, field) for *_, sums in every], dim=1)
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
    cells: dict[str, dict[str, Metric]] = {head: {} for site in measured for head in site.head_names}
    for site, name, sums in every:
        for index in range(sums.rows.shape[1]):
            value, (low, high), flat, count = next(columns)
            by_place = _by_place(site, sums, index, subject.places)
            interval = (low, high) if count > 1 else None
            cells[f"{site.path}.{index}"][name] = Metric(value, interval, flat, count, by_place)
    names = dict.fromkeys((*METRICS, *(name for metrics in measured.values() for name in metrics)))
    found = {name for _, name, _ in every}
    return HeadsResult(
        examples=len(subject.examples),
        metrics={name: METRICS.get(name, f"weight on {name}") for name in names if name in found},
        places=subject.places,
        heads=[
            MeasuredHead(head, f"{site.stack} {site.kind}".strip(), cells[head])
            for site in measured
            for head in site.head_names
        ],
    )


def heads_run(
    run: RunFolder,
    *,
    split: Split = "valid",
    count: int = 2000,
    reuse: bool = False,
    progress: Progress = silent,
) -> HeadsResult:
    """Every head of a run on examples of a split; kept in the run, unless more examples are kept there.

    With ``reuse``, what is kept is taken instead, if it is of as many examples.
    """
    subject, name = load_subject(run, split=split, count=count), f"heads-{split}"
    kept = run.kept(name, HeadsResult) if reuse else None
    if kept is not None and kept.examples >= len(subject.examples):
        return kept
    measured = describe_heads(subject, run_sets(run, subject), progress=progress)
    found = replace(measured, run=run.name, split=split)
    save_if_larger(run, name, found, "examples")
    return found


def run_sets(run: RunFolder, subject: Subject) -> KeySets:
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


def _by_place(site: Site, sums: Sums, index: int, places: list[str]) -> dict[str, float] | None:
    """In a decoder, whose rows are the target's places: the mean of each row that counts."""
    counts = sums.row_counts[index]
    if site.queries != "answer" or len(places) != len(counts):
        return None
    means = zip(places, (sums.by_row[index] / counts).tolist(), (counts > 0).tolist(), strict=True)
    return {place: mean for place, mean, known in means if known}
