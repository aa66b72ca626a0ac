"""Where baselines disagree about a head: when the intervals of what is lost do not meet."""

from dataclasses import dataclass
from itertools import combinations

from attnlab.analysis.ablate.singles import ALL, Single
from attnlab.results import Estimate, Interval


@dataclass(frozen=True)
class Extreme:
    """What is lost towards one baseline."""

    baseline: str
    value: float
    interval: Interval


@dataclass(frozen=True)
class Disagreement:
    """A head, and the two baselines whose intervals lie farthest apart."""

    head: str
    least: Extreme
    most: Extreme


def disagreements(by_baseline: dict[str, list[Single]]) -> list[Disagreement]:
    """Heads whose worth depends on the baseline, the widest difference of each, the widest first."""
    found = []
    for rows in zip(*by_baseline.values(), strict=True):
        cells = {name: row.lost[ALL] for name, row in zip(by_baseline, rows, strict=True)}
        apart = [ends for pair in combinations(cells, 2) if (ends := _apart(cells, *pair))]
        if apart:
            low, high = max(apart, key=lambda ends: ends[1].value - ends[0].value)
            found.append(Disagreement(rows[0].head, low, high))
    return sorted(found, key=lambda row: row.least.value - row.most.value)


def _apart(cells: dict[str, Estimate], a: str, b: str) -> tuple[Extreme, Extreme] | None:
    """(lower, higher), if the intervals of both do not meet."""
    low, high = sorted((a, b), key=lambda name: cells[name].value)
    below, above = cells[low].interval, cells[high].interval
    if below is None or above is None or below[1] >= above[0]:
        return None
    return Extreme(low, cells[low].value, below), Extreme(high, cells[high].value, above)


def disagreement_sentence(found: list[Disagreement], heads: int) -> str:
    """What ``disagreements`` found, in words."""
    if not found:
        return "The baselines agree on every head within their intervals."
    first = found[0]
    return (
        f"The baselines disagree on {len(found)} of {heads} heads, most on {first.head}: without it "
        f"{_points(first.most)} are lost towards {first.most.baseline}, but "
        f"{_points(first.least)} towards {first.least.baseline}."
    )


def _points(cell: Extreme) -> str:
    low, high = cell.interval
    return f"{100 * cell.value:.1f} points (95%: {100 * low:.1f} to {100 * high:.1f})"
