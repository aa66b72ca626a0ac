"""How fast the explorer answers, for docs/explorer.md."""

import json
from pathlib import Path
from typing import Any

LATENCY = Path(__file__).parent.parent / "results/explorer/latency.json"


def latency_table() -> str:
    """From an event to the redrawn page, by run and place."""
    found: dict[str, Any] = json.loads(LATENCY.read_text(encoding="utf-8"))
    rows = [
        "| run | where | median | 95% within | slowest | first paint | |",
        "|---|---|---|---|---|---|---|",
    ]
    for run, places in found["runs"].items():
        for place, row in places.items():
            times = " | ".join(f"{row[key]:.0f} ms" for key in ("median", "p95", "worst", "first_paint"))
            size, ready = row.get("megabytes"), row.get("ready_seconds")
            more = f"{size:.2f} MB" if size else f"ready after {ready:.1f} s"
            rows.append(f"| `{run}` | {place} | {times} | {more} |")
    machine = found["environment"]
    rows += [
        "",
        f"{found['interactions']} interactions each; {machine['cores']} cores, {machine['processor']}. "
        f"`{found['command']}`",
    ]
    return "\n".join(rows)
