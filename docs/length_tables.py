"""What docs show about positions and lengths."""

import json
from pathlib import Path

from attnlab.analysis.places import StackPlaces
from attnlab.figures import to_svg
from attnlab.figures.positions import draw_kinds, kinds_data
from attnlab.positions import build_positions
from attnlab.spec import (
    Alibi,
    Interpolated,
    PositionSpec,
    Randomised,
    Rotary,
    Sinusoidal,
    write_variant,
)
from attnlab.storage import write_json, write_text

RESULTS = Path(__file__).parent.parent / "results"
SHOWN: tuple[PositionSpec, ...] = (
    Sinusoidal(),
    Rotary(),
    Alibi(),
    Randomised(limit=64),
    Interpolated(inner="sinusoidal", trained=16),
    Interpolated(inner="rotary", trained=16),
)


def draw_position_kinds(path: Path) -> None:
    """Kinds without trained vectors, 16 tokens in training, 32 drawn."""
    stacks = [
        StackPlaces(
            spec.kind, write_variant(spec), build_positions(spec, width=64, head_width=16), 16, trained=16
        )
        for spec in SHOWN
    ]
    data = kinds_data(stacks, 32)
    write_text(path.with_suffix(".svg"), to_svg(draw_kinds(data)))
    write_json(path.with_suffix(".json"), data)


def memory_table() -> str:
    """MiB that one pass adds, by length."""
    found = json.loads((RESULTS / "lengths/memory.json").read_text(encoding="utf-8"))
    added = {(row["way"], row["length"]): row["mib"] for row in found["rows"]}
    lengths = sorted({length for _, length in added})
    rows = [
        "| attention to | " + " | ".join(f"{length:,} tokens" for length in lengths) + " |",
        "|---" * (1 + len(lengths)) + "|",
        *(
            f"| {way} | "
            + " | ".join(f"{added[way, n]:.0f} MiB" if (way, n) in added else "" for n in lengths)
            + " |"
            for way in dict.fromkeys(way for way, _ in added)
        ),
        "",
        f"Peak of resident memory that one list adds in evaluation, 2 layers, width 64, 4 heads. "
        f"`{found['command']}`",
    ]
    return "\n".join(rows)
