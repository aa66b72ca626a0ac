"""Counts over the batches of the steps that a watch looks at: classes, those without a gradient, inputs."""

import math
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor

from attnlab.runs.observed import Answers, Inputs, Observed

LISTED = 256
"""Classes or tokens that are listed, the most frequent ones."""
TABLE = 2**18
"""Numbers in a table of classes by place, at most; places behind are not counted."""
VARIED = 0.95
"""The chance that two examples have the same class, above which a place says nothing of their order."""
DIGITS = 5
"""Of numbers that are kept."""


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def finite(value: float) -> float | None:
    return rounded(value) if math.isfinite(value) else None


def by_class(values: Tensor, targets: Tensor, rows: int | None) -> tuple[Tensor, Tensor] | None:
    """``values`` as (B, T, V) and ``targets`` as (B, T), where T is 1 for classes; None if they do not fit.

    The scores of classes stand last, or second as torch's losses have them.
    """
    if values.dim() == targets.dim() + 1 and values.shape[:-1] == targets.shape:
        pass
    elif values.dim() > 2 and (values.shape[0], *values.shape[2:]) == tuple(targets.shape):
        values = values.movedim(1, -1)
    else:
        return None
    count = rows if targets.dim() == 1 and rows and targets.numel() % rows == 0 else targets.shape[0]
    if not count or not targets.numel():
        return None
    return values.reshape(count, -1, values.shape[-1]), targets.reshape(count, -1)


@final
@dataclass
class Counts:
    """Counts over the batches of sampled steps."""

    seen: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    predicted: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    silent: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    between: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    order: "Order" = field(default_factory=lambda: Order())
    batches: int = 0
    floating: bool = False
    mean: float = 0.0
    square: float = 0.0
    repeated: float = 0.0

    @classmethod
    def of(cls, before: Observed) -> "Counts":
        """As they stood; what was counted goes on, the moments of inputs and the order begin anew."""
        known = before.answers
        if known is None:
            return cls()
        return cls(
            seen=_as_counts(known.seen),
            predicted=_as_counts(known.predicted),
            silent=_as_counts(known.silent),
            between=_as_counts(known.between),
            order=Order(known.grouped),
        )

    def add_inputs(self, given: Tensor) -> None:
        self.batches += 1
        self.floating = given.is_floating_point()
        if self.floating:
            values = given.float()
            self.mean += values.mean().item()
            self.square += values.square().mean().item()
        rows = given.cpu().contiguous() if given.dim() else given.reshape(1)
        distinct = len({row.numpy().tobytes() for row in _plain(rows)})
        self.repeated += 1 - distinct / max(1, len(rows))

    def add_targets(self, logits: Tensor, targets: Tensor) -> None:
        classes = logits.shape[-1]
        self.seen = _sum(self.seen, _counted(targets, classes))
        self.predicted = _sum(self.predicted, _counted(logits.detach().argmax(dim=-1), classes))
        self.order.add(targets, classes)

    def add_slopes(self, slopes: Tensor, targets: Tensor) -> None:
        classes = slopes.shape[-1]
        heard = slopes.detach().ne(0).any(dim=-1)  # (B, T)
        if not heard.any():
            return  # nothing learns here, so no class is singled out
        behind = heard.cummax(dim=1).values
        ahead = heard.flip(1).cummax(dim=1).values.flip(1)
        inside = ~heard & behind & ahead if targets.shape[1] > 1 else ~heard
        self.silent = _sum(self.silent, _counted(targets[~heard], classes))
        self.between = _sum(self.between, _counted(targets[inside], classes))

    def answers(self) -> Answers | None:
        if not self.seen.any():
            return None
        listed = self.seen.argsort(descending=True, stable=True)[:LISTED].sort().values.tolist()
        parts = (self.seen, self.predicted, self.silent, self.between)
        seen, predicted, silent, between = (_listed(each, listed) for each in parts)
        return Answers(seen, predicted, silent, between, self.order.grouped())

    def inputs(self) -> Inputs | None:
        if not self.batches:
            return None
        mean = self.mean / self.batches
        spread = math.sqrt(max(0.0, self.square / self.batches - mean**2))
        repeated = rounded(self.repeated / self.batches)
        if not self.floating:
            return Inputs(None, None, repeated)
        return Inputs(finite(mean), finite(spread), repeated)


@final
class Order:
    """Whether the answers of a batch are more alike than those of different batches.

    Of two examples, p is the chance that they have the same class at a place. With p inside a batch and p'
    between batches, (p - p') / (1 - p') is 0 if examples are shuffled, and 1 if each batch holds one class:
    the intraclass correlation, as Wright's fixation index has it for genes.
    """

    def __init__(self, before: float | None = None) -> None:
        self._before = before  # what an earlier watch found, until more is known
        self._counts = torch.zeros(0, 0, dtype=torch.long)  # (T, V)
        self._alike = torch.zeros(0, dtype=torch.double)  # (T,) pairs of one batch of the same class
        self._pairs = torch.zeros(0, dtype=torch.double)

    def add(self, targets: Tensor, classes: int) -> None:
        """The targets (B, T) of a batch; what is no class is left out."""
        given = targets[:, : max(1, TABLE // classes)].detach().cpu().long()
        places = given.shape[1]
        if self._counts.shape != (places, classes):  # the first batch, or one of another length
            self._counts = _widened(self._counts, places, classes)
            self._alike, self._pairs = (
                _widened(each, len(self._counts)) for each in (self._alike, self._pairs)
            )
        known = (given >= 0) & (given < classes)
        codes = (given.clamp(0, classes - 1) + classes * torch.arange(places))[known]
        counts = torch.bincount(codes, minlength=places * classes).reshape(places, classes)
        self._counts[:places, :classes] += counts
        self._alike[:places] += _pairs(counts).sum(dim=1)
        self._pairs[:places] += _pairs(counts.sum(dim=1))

    def grouped(self) -> float | None:
        """The largest correlation over the places whose classes vary; None where there is none."""
        alike = _pairs(self._counts).sum(dim=1) - self._alike
        pairs = _pairs(self._counts.sum(dim=1)) - self._pairs
        held = (pairs > 0) & (self._pairs > 0) & (alike < VARIED * pairs)
        inside, across = self._alike[held] / self._pairs[held], alike[held] / pairs[held]
        found = (inside - across) / (1 - across)
        return finite(found.max().item()) if len(found) else self._before


def _pairs(counts: Tensor) -> Tensor:
    return counts.double() * (counts - 1) / 2


def _widened(table: Tensor, *sizes: int) -> Tensor:
    """At least as large, filled with zeros."""
    wanted = [max(old, new) for old, new in zip(table.shape, sizes, strict=True)]
    found = table.new_zeros(wanted)
    found[tuple(slice(size) for size in table.shape)] = table
    return found


def _plain(rows: Tensor) -> Tensor:
    """Of a type that NumPy has."""
    return rows.float() if rows.dtype is torch.bfloat16 else rows


def _counted(targets: Tensor, classes: int) -> Tensor:
    """How often each class occurs; others, such as -100, are left out of a loss by agreement."""
    flat = targets.flatten().cpu().long()
    return torch.bincount(flat[(flat >= 0) & (flat < classes)], minlength=classes)


def _sum(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(max(len(a), len(b)), dtype=torch.long)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


def _listed(counts: Tensor, names: list[int]) -> dict[str, int]:
    return {str(name): int(counts[name]) for name in names if name < len(counts) and counts[name]}


def _as_counts(listed: dict[str, int]) -> Tensor:
    counts = torch.zeros(max(map(int, listed), default=-1) + 1, dtype=torch.long)
    for name, count in listed.items():
        counts[int(name)] = count
    return counts
