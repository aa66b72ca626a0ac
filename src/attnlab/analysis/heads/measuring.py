"""Where every head looks, as numbers: sums over the rows of each example, beside uniform attention's.

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
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlab.analysis.heads.sets import KeySets, kind_of, neighbours
from attnlab.analysis.subjects import Subject
from attnlab.models import attentions, seen_keys
from attnlab.progress import Progress, silent
from attnlab.taps import record


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


@dataclass(frozen=True)
class Rows:
    """Patterns of one attention and which keys each query sees."""

    pattern: Float[Tensor, "N H T S"]
    visible: Bool[Tensor, "N H T S"]

    @property
    def seen(self) -> Float[Tensor, "N H T"]:
        """n_t"""
        return self.visible.sum(dim=-1).double()


@torch.inference_mode()
def measure_heads(
    subject: Subject, sets: KeySets, *, progress: Progress = silent
) -> dict[str, dict[str, Sums]]:
    """Every metric of every attention by its path."""
    parts: dict[str, list[dict[str, Sums]]] = {path: [] for path in attentions(subject.model)}
    done = 0
    for batch in subject.batches():
        with record(subject.model, "*.pattern", "*.scores") as seen:
            subject.model(*batch.inputs)
        for path, found in parts.items():
            pattern, scores = (seen[f"{path}.{tap}"] for tap in ("pattern", "scores"))
            own = subject.model.mask_at(path, *batch.inputs)
            rows = Rows(pattern.double(), seen_keys(scores, own))
            found.append(_measure(path, rows, _part(sets, path, slice(done, done + len(batch)))))
        done += len(batch)
        progress(done, len(subject.examples))
    return {path: _joined(found) for path, found in parts.items()}


def _part(sets: KeySets, path: str, batch: slice) -> dict[str, Tensor]:
    """The sets of one attention; of those that differ between examples only a batch."""
    return {
        name: mask if mask.dim() == 2 else mask[batch] for name, mask in sets.get(kind_of(path), {}).items()
    }


def _measure(path: str, rows: Rows, sets: dict[str, Tensor]) -> dict[str, Sums]:
    queries, keys = rows.pattern.shape[-2:]
    return {
        **_shape(rows),
        **{
            name: _weight_on(rows, mask if mask.dim() == 2 else mask[:, None])
            for name, mask in {**neighbours(path, queries, keys), **sets}.items()
        },
    }


def _shape(rows: Rows) -> dict[str, Sums]:
    """Entropy and sparsity."""
    seen, free = rows.seen, rows.seen > 1
    most = seen.clamp(min=2).log()
    entropy = torch.special.entr(rows.pattern).sum(dim=-1)
    root = seen.clamp(min=2).sqrt()
    norm = rows.pattern.norm(dim=-1).clamp(min=1e-9)  # padding may see nothing at all
    sparsity = (root - 1 / norm) / (root - 1)
    one = torch.ones_like(seen)
    return {
        "entropy": _sums(entropy / most, one, free),
        "entropy_nats": _sums(entropy, most, free),
        "sparsity": _sums(sparsity, 0 * one, free),
    }


def _weight_on(rows: Rows, mask: Bool[Tensor, "T S"] | Bool[Tensor, "N 1 T S"]) -> Sums:
    within = mask & rows.visible
    size = within.sum(dim=-1)
    counted = (size > 0) & (rows.seen > 1)
    return _sums((rows.pattern * within).sum(dim=-1), size / rows.seen.clamp(min=1), counted)


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


def _joined(parts: list[dict[str, Sums]]) -> dict[str, Sums]:
    return {name: _join([part[name] for part in parts]) for name in parts[0]}


def _join(parts: list[Sums]) -> Sums:
    return Sums(
        heads=torch.cat([part.heads for part in parts]),
        uniform=torch.cat([part.uniform for part in parts]),
        rows=torch.cat([part.rows for part in parts]),
        by_row=torch.stack([part.by_row for part in parts]).sum(dim=0),
        row_counts=torch.stack([part.row_counts for part in parts]).sum(dim=0),
    )
