"""How well the doctor does: which faults did harm, what was named first, and how often it was wrong."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from doctor_jobs import Job
from numpy import ndarray
from scipy.stats import binomtest, fisher_exact

HARM, CHANCE = 0.05, 0.01
"""A fault does harm if it costs this share of the test examples, and if chance does so this rarely."""
HEALTHY = "healthy"
BOOTSTRAPS, SEED = 2_000, 26


@dataclass(frozen=True)
class Row:
    """One run of the study: what was planted, and what the doctor says."""

    job: Job
    truth: str
    """The kind that was planted; healthy where nothing was."""
    named: list[str]
    """Kinds of findings that are alarms, the most likely first."""

    @property
    def first(self) -> str:
        return self.named[0] if self.named else HEALTHY

    @property
    def cell(self) -> str:
        """Runs of one cell differ in their seeds alone."""
        what = self.job.plant.name if self.job.plant else self.job.variant
        return f"{self.job.task} {what}"


def accuracy(outcome: dict[str, Any]) -> float:
    """The share of test examples that the trained model answers rightly by itself."""
    return float(np.mean(outcome["right"])) if not outcome["failure"] else 0.0


def does_harm(job: Job, sick: dict[str, Any], healthy: dict[str, Any]) -> bool:
    """A paired test over the test examples of the sick run and its healthy twin (McNemar, exact); of plants
    that flatter, what the run reported against what it does (Fisher, exact) will do as well.
    """
    if healthy["failure"]:
        return False
    if sick["failure"]:
        return True
    assert job.plant is not None
    right = np.array(sick["right"], dtype=bool)
    if job.plant.harm == "flattered":
        count, own = len(right), int(right.sum())
        reported = round(sick["reported"] * count)
        chance = fisher_exact([[reported, count - reported], [own, count - own]], alternative="greater")[1]
        if (reported - own) / count >= HARM and chance < CHANCE:
            return True
    before = np.array(healthy["right"], dtype=bool)
    lost, won = int((before & ~right).sum()), int((right & ~before).sum())
    if (lost - won) / len(right) < HARM:
        return False
    return bool(binomtest(lost, lost + won, 0.5, alternative="greater").pvalue < CHANCE)


def scores(rows: Sequence[Row]) -> dict[str, Any]:
    """Of sick and healthy runs together: F1 by kind, and how often the right kind stands high."""
    sick = [row for row in rows if row.truth != HEALTHY]
    healthy = [row for row in rows if row.truth == HEALTHY]
    kinds = sorted({row.truth for row in rows})
    f1 = f1_by_kind(rows, kinds)
    return {
        "sick": len(sick),
        "healthy": len(healthy),
        "macro_f1": float(np.mean(list(f1.values()))) if kinds else None,
        "f1": f1,
        "first": counted([row.first == row.truth for row in sick]),
        "among_three": counted([row.truth in row.named[:3] for row in sick]),
        "found_at_all": counted([row.truth in row.named for row in sick]),
        "false_alarms": counted([bool(row.named) for row in healthy]),
        "alarms_by_kind": dict(Counter(row.first for row in healthy if row.named)),
        "confusion": confusion(sick),
    }


def f1_by_kind(rows: Sequence[Row], kinds: Sequence[str]) -> dict[str, float]:
    """2 hits / (planted + named first)."""
    hits = Counter(row.truth for row in rows if row.first == row.truth)
    planted, named = Counter(row.truth for row in rows), Counter(row.first for row in rows)
    return {kind: 2 * hits[kind] / (planted[kind] + named[kind]) for kind in kinds}


def counted(good: Sequence[bool]) -> dict[str, Any]:
    """How many are true, the share, and the 95% interval of a share (Clopper and Pearson)."""
    if not good:
        return {"count": 0, "of": 0, "share": None, "interval": None}
    count = sum(good)
    exact = binomtest(count, len(good)).proportion_ci(method="exact")
    return {
        "count": count,
        "of": len(good),
        "share": count / len(good),
        "interval": [float(exact.low), float(exact.high)],
    }


def intervals(rows: Sequence[Row]) -> dict[str, list[float]]:
    """95% intervals by a bootstrap over cells, since runs that differ in their seeds alone are alike."""
    kinds = sorted({row.truth for row in rows})
    number = {kind: at for at, kind in enumerate([*kinds, *sorted({row.first for row in rows} - {*kinds})])}
    cells = sorted({row.cell for row in rows})
    place = {cell: at for at, cell in enumerate(cells)}
    tables = np.zeros((len(cells), 3, len(number)))  # hits, planted, named first
    three, sick = np.zeros(len(cells)), np.zeros(len(cells))
    for row in rows:
        table = tables[place[row.cell]]
        table[0, number[row.truth]] += row.first == row.truth
        table[1, number[row.truth]] += 1
        table[2, number[row.first]] += 1
        if row.truth != HEALTHY:
            three[place[row.cell]] += row.truth in row.named[:3]
            sick[place[row.cell]] += 1
    chance = np.random.default_rng(SEED)
    weights = chance.multinomial(len(cells), np.full(len(cells), 1 / len(cells)), size=BOOTSTRAPS)
    drawn = np.tensordot(weights, tables, axes=1)
    hits, planted, named = drawn[:, 0], drawn[:, 1], drawn[:, 2]
    faults = [number[kind] for kind in kinds if kind != HEALTHY]
    there = planted > 0
    f1 = np.where(there, 2 * hits / np.maximum(planted + named, 1), 0).sum(axis=1) / there.sum(axis=1)
    count = np.maximum(weights @ sick, 1)
    return {
        "macro_f1": middle(f1),
        "first": middle(hits[:, faults].sum(axis=1) / count),
        "among_three": middle(weights @ three / count),
    }


def middle(values: ndarray) -> list[float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return [float(low), float(high)]


def confusion(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """What is named first, by what was planted."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(row.truth, Counter())[row.first] += 1
    return {kind: dict(counts.most_common()) for kind, counts in sorted(found.items())}
