"""What docs show about positions and lengths."""

import json
from pathlib import Path

from head_tables import read
from study_figures import draw_kinds, kinds_data

from attnlab.analysis import percent
from attnlab.analysis.ablate.ablation import AblationResult
from attnlab.analysis.ablate.effects import ALL
from attnlab.analysis.heads import HeadsResult
from attnlab.analysis.positions import StackPlaces
from attnlab.errors import LabError
from attnlab.figures.style import to_svg
from attnlab.positions import build_positions
from attnlab.problems.sorting.studies import FAR_LENGTHS, REFERENCE_LENGTHS
from attnlab.specs import (
    Alibi,
    Interpolated,
    PositionSpec,
    Randomised,
    Rotary,
    Sinusoidal,
    to_json,
    write_variant,
)
from attnlab.storage import write_json, write_text
from attnlab.studies.outcome import CurvePoint, StudyResult, VariantResult, read_results
from attnlab.tables.ablate import points
from attnlab.tables.study import show_value, study_tables

RESULTS = Path(__file__).parent.parent / "results"
SHOWN: tuple[PositionSpec, ...] = (
    Sinusoidal(),
    Rotary(),
    Alibi(),
    Randomised(limit=64),
    Interpolated(inner="sinusoidal", trained=16),
    Interpolated(inner="rotary", trained=16),
)
REPORTED: dict[str, tuple[tuple[float, ...], ...]] = {
    "sinusoidal, mean": ((45.4, 51.4, 51.8, 51.2), (54.6, 48.6, 48.2, 48.8)),
    "learned, mean": ((54.6, 48.6, 48.2, 48.8), (54.6, 48.6, 48.2, 48.8)),
    "none, mean": ((45.4, 51.4, 51.8, 51.2), (50.0, 44.2, 52.4, 49.2)),
}
"""Accuracy in percent at the reference's lengths, as its two reports have it."""
SHOWN_FAR = (("sorting-lengths", "default"), ("sorting-global-seeds", "global"))


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
    write_json(path.with_suffix(".json"), to_json(data))


def curve_table(study: str, *names: str) -> str:
    """Mean and lowest seed of some curves of a study, by length."""
    result = study_result(study)
    curves = [curve for curve in result.curves or [] if curve.name in names]
    places = sorted(
        {
            row.at
            for curve in curves
            for variant in result.variants
            for row in points_of(variant, curve.name)
        }
    )
    lines = [
        "| | " + " | ".join(f"{place:,}" for place in places) + " |",
        "|---" * (1 + len(places)) + "|",
    ]
    for curve in curves:
        lines.append(f"| **{curve.title}** |" + " |" * len(places))
        for variant in result.variants:
            rows = {row.at: row for row in points_of(variant, curve.name)}
            cells = (_cell(rows.get(place), curve.unit) for place in places)
            lines.append(f"| {variant.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + f"\n\nMean of {len(result.seeds)} seeds (lowest seed). `{result.command}`"


def points_of(variant: VariantResult, curve: str) -> list[CurvePoint]:
    """A curve of a variant."""
    return (variant.curves or {})[curve]


def _cell(row: CurvePoint | None, unit: str) -> str:
    if row is None or row.mean is None:
        return ""
    lowest = min(value for value in row.values if value is not None)
    return f"{show_value(row.mean, unit)} ({show_value(lowest, unit)})"


def reported_table() -> str:
    """What the two reports of the reference have, beside what the same models give here."""
    result = study_result("sorting-reference")
    lines = [
        "| encoding, pooling | first report | second report | here | commoner answer here |",
        "|---|---|---|---|---|",
    ]
    for variant in result.variants:
        told = [" ".join(f"{value:.1f}" for value in row) for row in REPORTED.get(variant.name, ())]
        curves = [_means(variant, name) for name in ("reference", "reference_commoner")]
        lines.append(f"| {variant.name} | " + " | ".join([*(told or ["", ""]), *curves]) + " |")
    at = ", ".join(map(str, REFERENCE_LENGTHS))
    return "\n".join(lines) + f"\n\n% right at lengths {at}, reference negatives. `{result.command}`"


def _means(variant: VariantResult, curve: str) -> str:
    means = {row.at: row.mean or 0.0 for row in points_of(variant, curve)}
    return " ".join(f"{100 * means[length]:.1f}" for length in REFERENCE_LENGTHS)


def variance_table() -> str:
    """What the spread of accuracy at 256 comes from."""
    result = study_result("sorting-factorial")
    return study_tables(result)[0].to_markdown() + f"\n\n`{result.command}`"


def sorting_summary() -> str:
    """How far the presets get that learned from 8 to 16 numbers."""
    default, everywhere = (_swapped(name, variant) for name, variant in SHOWN_FAR)
    commands = " ".join(f"`{study_result(name).command}`" for name, _ in SHOWN_FAR)
    return (
        "Trained on 8 to 16 numbers, asked for one exchanged pair of neighbours: "
        f"{_far(default, FAR_LENGTHS)} with a window of two neighbours a side; with attention to all "
        f"numbers {_far(everywhere, (256, 1024))} (mean of 5 and of 10 seeds, lowest seed). {commands}"
    )


def _swapped(study: str, name: str) -> dict[int, CurvePoint]:
    return {row.at: row for row in points_of(study_result(study).variant(name), "swap")}


def _far(rows: dict[int, CurvePoint], lengths: tuple[int, ...]) -> str:
    return ", ".join(f"{_cell(rows[length], 'share')} right at {length:,}" for length in lengths)


def sorter_table() -> str:
    """Where each head of the shipped sorter looks, and what is lost without it."""
    files = [read(f"{name}/sorter.json") for name in ("heads", "ablation")]
    looks, missed = HeadsResult.from_json(files[0]), AblationResult.from_json(files[1])
    names = ("previous", "diagonal", "next", "wrong_side")
    lost = {
        (row.head, towards): row.lost[ALL] for towards, rows in missed.baselines.items() for row in rows
    }
    columns = [
        *(name.replace("_", " ") for name in names),
        *(f"towards {each}" for each in missed.baselines),
    ]
    lines = [
        "| head | " + " | ".join(columns) + " |",
        "|---" * (1 + len(columns)) + "|",
        *(
            f"| `{row.head}` | "
            + " | ".join(f"{row.metrics[name].value:.2f}" for name in names)
            + " | "
            + " | ".join(points(lost[row.head, towards]).strip() for towards in missed.baselines)
            + " |"
            for row in looks.heads
        ),
        "",
        f"Weight on the number before, its own, the one after, and numbers that stand on the wrong side "
        f"({looks.examples:,} {looks.split} lists); points of {percent(missed.exact_match)} lost "
        f"without the head, ± half of the 95% interval ({missed.examples:,} {missed.split} lists of "
        f"8 to 16 numbers). `{files[0]['command']}`, `{files[1]['command']}`",
    ]
    return "\n".join(lines)


def margins_table() -> str:
    """Exponents of the margin over length."""
    result = study_result("sorting-margins")
    found = {variant.name: variant.measures["margin_exponent"] for variant in result.variants}
    told = (
        f"{name} {each.mean:.2f} ({each.interval[0]:.2f} to {each.interval[1]:.2f})"
        for name, each in found.items()
        if each.interval is not None
    )
    return f"Exponent of the margin over length (95% interval): {'; '.join(told)}."


def study_result(name: str) -> StudyResult:
    """The result in ``results/NAME``."""
    result = read_results(RESULTS / name)
    if result is None:
        raise LabError(f"results/{name} holds no study")
    return result


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
