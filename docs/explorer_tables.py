"""How fast the explorer answers, and how fast modules of others are ablated, for the docs."""

import json
from pathlib import Path
from typing import Any

from attnlab.runs import open_run

RESULTS = Path(__file__).parent.parent / "results"


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def told(found: dict[str, Any]) -> str:
    """The machine and the command."""
    machine = found["environment"]
    return f"{machine['cores']} cores, {machine['processor']}. `{found['command']}`"


def latency_table() -> str:
    """From an event to the redrawn page, by run and place."""
    found = read("explorer/latency.json")
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
    return "\n".join([*rows, "", f"{found['interactions']} interactions each; {told(found)}"])


def engine_table() -> str:
    """The engine in JavaScript by itself."""
    found = read("explorer/engine.json")
    rows = ["| run | a scene of | median | 95% within | the first |", "|---|---|---|---|---|"]
    for row in found["rows"]:
        times = " | ".join(f"{row[key]:.1f} ms" for key in ("median", "p95", "first"))
        rows.append(f"| `{row['run']}` | {row['work']} | {times} |")
    return "\n".join([*rows, "", f"{found['scenes']} scenes each, in V8; {told(found)}"])


def handouts_table() -> str:
    """Hand-outs of the shipped runs, and how far the model in them is from torch."""
    found = read("explorer/handouts.json")
    rows = [
        "| run | weights | bits a weight | file | answers unlike torch's | largest difference of a logit |",
        "|---|---|---|---|---|---|",
    ]
    for run, row in sorted(found["runs"].items(), key=lambda each: each[1]["megabytes"]):
        engines = (row["v8"], row["chromium"])
        wrong, away = (max(each[key] for each in engines) for key in ("wrong", "away"))
        weights = sum(each.numel() for each in open_run(run).model.parameters())
        rows.append(
            f"| `{run}` | {weights:,} | {row['bits']} | {row['megabytes']:.1f} MB "
            f"| {wrong} of {row['answers']:,} | {away:.4f} |"
        )
    return "\n".join([*rows, "", f"In V8 and in Chromium; {told(found)}"])


def tabs_table() -> str:
    """Many pages at once on one server."""
    found = read("explorer/tabs.json")
    return "\n".join(
        [
            "| pages | minutes | interactions | errors | median | 95% within | memory | gained meanwhile |",
            "|---|---|---|---|---|---|---|---|",
            f"| {found['tabs']} | {found['minutes']:g} | {found['interactions']:,} "
            f"| {len(found['errors'])} | {found['median_ms']:.0f} ms | {found['p95_ms']:.0f} ms "
            f"| {found['memory_mib']:.0f} MiB "
            f"| {found['memory_gained_mib']:.1f} MiB |",
            "",
            told(found),
        ]
    )


def foreign_table() -> str:
    """Ablation of every head of modules of others against a hook and a pass a head."""
    found = read("foreign/speed.json")
    rows = [
        "| model | heads | a hook and a pass a head | `ablate` | ratio, median of rounds (lowest) |",
        "|---|---|---|---|---|",
    ]
    for name, row in found.items():
        if isinstance(row, dict) and "ratio" in row:
            rows.append(
                f"| {name} | {row['heads']} | {row['plain_seconds']:.0f} s | {row['seconds']:.0f} s "
                f"| {row['ratio']:.2f} ({row['ratio_lowest']:.2f}) |"
            )
    examples = found["bert-mini"]["examples"]
    return "\n".join([*rows, "", f"{examples} examples, the same numbers both ways; {told(found)}"])
