"""Where baselines disagree about a head: when the intervals of what is lost do not meet."""

from itertools import combinations
from typing import Any

from attnlab.analysis.ablate.singles import ALL


def disagreements(by_baseline: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Heads whose worth depends on the baseline, the widest difference of each, the widest first."""
    found = []
    for rows in zip(*by_baseline.values(), strict=True):
        cells = {name: row["lost"][ALL] for name, row in zip(by_baseline, rows, strict=True)}
        apart = [(low, high) for pair in combinations(cells, 2) for low, high in _apart(cells, *pair)]
        if apart:
            low, high = max(apart, key=lambda pair: cells[pair[1]]["value"] - cells[pair[0]]["value"])
            found.append(
                {
                    "head": rows[0]["head"],
                    "least": {"baseline": low, **cells[low]},
                    "most": {"baseline": high, **cells[high]},
                }
            )
    return sorted(found, key=lambda row: row["least"]["value"] - row["most"]["value"])


def _apart(cells: dict[str, dict[str, Any]], a: str, b: str) -> list[tuple[str, str]]:
    """(lower, higher), if the intervals of both do not meet."""
    low, high = sorted((a, b), key=lambda name: float(cells[name]["value"]))
    if cells[low]["interval"] is None or cells[low]["interval"][1] >= cells[high]["interval"][0]:
        return []
    return [(low, high)]


def disagreement_sentence(found: list[dict[str, Any]], heads: int) -> str:
    """What ``disagreements`` found, in words."""
    if not found:
        return "The baselines agree on every head within their intervals."
    first = found[0]
    return (
        f"The baselines disagree on {len(found)} of {heads} heads, most on {first['head']}: without it "
        f"{_points(first['most'])} are lost towards {first['most']['baseline']}, but "
        f"{_points(first['least'])} towards {first['least']['baseline']}."
    )


def _points(cell: dict[str, Any]) -> str:
    low, high = cell["interval"]
    return f"{100 * cell['value']:.1f} points (95%: {100 * low:.1f} to {100 * high:.1f})"
