"""What docs show about why a long adder adds: weights of its heads, and what carries a carry."""

import json
from typing import Any

from length_tables import RESULTS

SHARE = 0.1
"""Of a carry's effect: heads that restore less in every column are left out."""


def why_table() -> str:
    """Where each head looks that carries something, and how much of a carry it restores."""
    found: dict[str, Any] = json.loads((RESULTS / "addition-length/why.json").read_text(encoding="utf-8"))
    carries = found["carries"]
    heads = [
        head for head in carries[0]["restored"] if max(row["restored"][head] for row in carries) >= SHARE
    ]
    lengths = list(found["heads"])
    columns = [
        "head",
        *(f"own column, {length} digits" for length in lengths),
        *(f"deciding columns, {length} digits" for length in lengths),
        *(f"carry into 10^{row['column']}, from {row['reach']} below" for row in carries),
    ]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for head in heads:
        weights = [
            _weight(found["heads"][length][head].get(name))
            for name in ("column", "carry")
            for length in lengths
        ]
        restored = [f"{100 * row['restored'][head]:.0f}%" for row in carries]
        lines.append(f"| `{head}` | {' | '.join([*weights, *restored])} |")
    told = (
        "Mean weights on uniform sums, and the share of a carry's effect that a head's output restores by "
        f"itself, of {carries[0]['pairs']} pairs of sums of {found['length']} digits. `{found['command']}`"
    )
    return "\n".join([*lines, "", told])


def _weight(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
