"""Builds what README and docs show from the zoo and the results: ``python docs/build.py``.

Pictures are drawn from shipped runs; tables between ``<!-- NAME -->`` and ``<!-- end -->`` are written from
the JSON in ``results/``. A test fails when a document and the results disagree.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from answer_tables import adder_answer, headline_table, patch_answer, sorting_answer
from course_tables import TABLES as COURSE
from doctor_study import (
    diagnosis_table,
    harmless_table,
    kinds_table,
    sizes_table,
    stories_table,
    study_table,
    tasks_table,
    watching_table,
)
from doctor_tables import faults_table, limits_table
from explorer_tables import engine_table, foreign_table, handouts_table, latency_table, tabs_table
from fault_tables import faults_kept_table, fuzz_table, hostile_summary, integrity_table, streaming_line
from gallery import draw_gallery, gallery_pages
from head_tables import (
    ablation_speed_table,
    adder_ablation,
    adder_heads,
    adder_patching,
    carriers_of_the_adder,
    kept_heads_table,
    missed_table,
    one_at_a_time_table,
    places_table,
    pruned_seeds,
    pruning_cost_table,
    pruning_summary,
    pruning_table,
    reference_table,
    strongest_table,
    together_table,
)
from length_tables import (
    curve_table,
    draw_position_kinds,
    margins_table,
    memory_table,
    reported_table,
    sorter_table,
    sorting_summary,
    study_result,
    variance_table,
)
from licence_tables import needed_table, optional_table, shipped_table, tests_table
from long_tables import why_table
from machine_tables import busy_table, busy_torch_table, presets_table
from patch_verdict import CONTRASTS, contrasts, shares, side_by_side
from reading_tables import (
    calibration_table,
    muon_line,
    reading_summary,
    step_table,
    time_table,
    wild_table,
)
from seeing_tables import explained_table, pages_table, projection_table
from study_figures import (
    draw_probe_curves,
    draw_pruned_seeds,
    draw_rates,
    probe_curves_data,
    pruned_seeds_data,
    rates_data,
)

from attnlab.analysis import percent
from attnlab.analysis.maps import maps_of, maps_reader, watch
from attnlab.analysis.samples import read_inputs
from attnlab.figures.ablation import ablation_data, draw_ablation
from attnlab.figures.heads import draw_heads, heads_data
from attnlab.figures.maps import draw_maps, maps_data
from attnlab.figures.patching import draw_grids, head_grids_data, stream_data
from attnlab.figures.style import to_svg
from attnlab.runs import open_run
from attnlab.specs import to_json
from attnlab.storage import write_json, write_text
from attnlab.tables.study import markdown

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs/images"


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    draw_reading("test:0", IMAGES / "grid-cross")
    draw_head_map(IMAGES / "adder-heads")
    draw_patching(2, IMAGES / "adder-patch")
    draw_missed(IMAGES / "adder-missed")
    draw_pruning_of_seeds(IMAGES / "pruning")
    draw_position_kinds(IMAGES / "positions")
    draw_gallery(IMAGES / "gallery")
    if (ROOT / "results/patch-attention").exists():
        draw_learning_rates(IMAGES / "patch-attention-rates")
        draw_probes_over_training(IMAGES / "patch-attention-probes")
    for document in documents():
        write_text(document, fill(document.read_text(encoding="utf-8")))


def documents() -> list[Path]:
    """Everything that may show a table."""
    return [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def draw_reading(name: str, path: Path) -> None:
    """Where the shipped reader of grids looks while it says each digit of the image ``name``."""
    reader = maps_reader(open_run("zoo:grid"))
    (sample,) = read_inputs(reader, [name])
    found = maps_of(watch(reader, sample), view="digits", heads="mean")
    data = maps_data("digits", [(sample, found)], scale="fixed")
    write_text(path.with_suffix(".svg"), to_svg(draw_maps(data)))
    write_json(path.with_suffix(".json"), to_json(data))


def draw_head_map(path: Path) -> None:
    """Where the shipped adder's heads look on many sums."""
    data = heads_data(adder_heads())
    write_text(path.with_suffix(".svg"), to_svg(draw_heads(data)))
    write_json(path.with_suffix(".json"), to_json(data))


def draw_patching(number: int, path: Path) -> None:
    """How the carry into a column travels through the shipped adder."""
    found = adder_patching()
    (column,) = (each for each in found.columns if each.column == number)
    for name, data_of in (("stream", stream_data), ("heads", head_grids_data)):
        data = data_of(column, found.words)
        write_text(path.with_name(f"{path.name}-{name}.svg"), to_svg(draw_grids(data)))
        write_json(path.with_name(f"{path.name}-{name}.json"), to_json(data))


def draw_missed(path: Path) -> None:
    """What is lost without each head of the shipped adder."""
    data = ablation_data(adder_ablation())
    write_text(path.with_suffix(".svg"), to_svg(draw_ablation(data)))
    write_json(path.with_suffix(".json"), to_json(data))


def draw_pruning_of_seeds(path: Path) -> None:
    """Exact match over heads kept, for every adder that was pruned."""
    data = pruned_seeds_data(pruned_seeds())
    write_text(path.with_suffix(".svg"), to_svg(draw_pruned_seeds(data)))
    write_json(path.with_suffix(".json"), data)


def draw_learning_rates(path: Path) -> None:
    """Accuracy over the learning rate, a curve for each way to start the positions."""
    data = rates_data(study_result("patch-attention"))
    write_text(path.with_suffix(".svg"), to_svg(draw_rates(data)))
    write_json(path.with_suffix(".json"), data)


def draw_probes_over_training(path: Path) -> None:
    """How even attention was and what shuffling moved, epoch by epoch."""
    found = json.loads((ROOT / "results/patch-attention/probes.json").read_text(encoding="utf-8"))
    data = probe_curves_data(found)
    write_text(path.with_suffix(".svg"), to_svg(draw_probe_curves(data)))
    write_json(path.with_suffix(".json"), data)


def best_of_one_head() -> str:
    """One sentence on how far the unchanged architecture goes."""
    result = study_result("patch-attention-best")
    said = []
    for variant in result.variants:
        found = variant.measures["accuracy"]
        assert found.mean is not None
        interval = " to ".join(percent(end) for end in found.interval or ())
        each = ", ".join(percent(value) for value in found.known)
        said.append(f"{percent(found.mean)} (95%: {interval}; seeds {each}) at {variant.name}")
    return (
        f"The same architecture, plain SGD, batch 32, 5 epochs, classifies {' and '.join(said)} of all "
        f"test digits correctly. `{result.command}`"
    )


def fill(document: str) -> str:
    """``document`` with every table written anew."""

    def table(match: re.Match[str]) -> str:
        return f"<!-- {match[1]} -->\n{build_table(match[1]).strip()}\n<!-- end -->"

    return re.sub(r"<!-- ([\w-]+) -->\n.*?<!-- end -->", table, document, flags=re.DOTALL)


def build_table(name: str) -> str:
    """The table that goes by ``name``: one of ours, or that of the study in ``results/NAME``."""
    if name in TABLES:
        return TABLES[name]()
    match name:
        case "gallery":
            return gallery_pages(IMAGES / "gallery")
        case "sorting-lengths" | "sorting-global" | "sorting-global-seeds":
            return curve_table(name, "swap", "reference")
        case "addition-length" | "addition-length-kinds":
            return curve_table(name, "uniform", "full-carry")
        case "sorting-margins":
            return curve_table(name, "margin", "fall") + "\n\n" + margins_table()
        case "sorting-reference":
            return curve_table(name, "reference", "swap")
        case "patch-attention-original":
            return side_by_side(study_result("patch-attention")).to_markdown()
        case "patch-attention-shares":
            result = study_result("patch-attention")
            return "\n\n".join(
                f"**{t.title}**\n\n{t.to_markdown()}" for t in (shares(result, lr) for lr in (0.1, 0.3))
            )
        case "patch-attention-contrasts":
            return contrasts(study_result("patch-attention"), CONTRASTS).to_markdown()
        case _:
            result = study_result(name)
            return f"{result.question}\n\n{markdown(result)}\n`{result.command}`"


def addition_table() -> str:
    """The adder's figures, a row a seed."""
    found = json.loads((ROOT / "results/addition/adder.json").read_text(encoding="utf-8"))
    names = {"default": "SSE", "avx2": "AVX2", "avx512": "AVX-512"}
    settings, machine = list(found["settings"]), found["environment"]
    low, high = found["share_perfect_interval"]
    seconds = ", ".join(f"{found['median_training_seconds'][name]:.0f} s" for name in settings)
    columns = ["right of 1,000,000 sums", *(names[name] for name in settings), "never seen in training"]
    rows = [
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
        *(_row(seed, [row for row in found["runs"] if row["seed"] == seed]) for seed in found["seeds"]),
        "",
        f"{found['perfect']} of {found['total']} adders get every sum right (95%: {percent(low)} to "
        f"{percent(high)}), each trained on {found['spec']['task']['train']:,} pairs with one thread as",
        f"such processors round: {found['different_weights']} different sets of weights. "
        f"Training took {seconds} (medians, two runs side by side; {machine['cores']} cores, "
        f"{machine['processor']}). `{found['command']}`",
    ]
    return "\n".join(rows)


def studies_speed_table() -> str:
    """What the machinery of studies costs."""
    found = json.loads((ROOT / "results/studies/speed.json").read_text(encoding="utf-8"))
    machine, rounds = found["environment"], found["rounds"]

    def seconds(way: str) -> str:
        return f"{median(row[way]['seconds'] for row in rounds):.0f} s"

    rows = [
        f"| {len(found['seeds'])} equal runs | whole command |",
        "|---|---|",
        f"| by hand, the training loop in one process | {seconds('by_hand')} |",
        f"| `attnlab study run --workers 1` | {seconds('one_worker')} |",
        f"| `attnlab study run --workers 2` | {seconds('two_workers')} |",
        "",
        f"Two workers take {found['two_workers_over_one']:.2f} of one's time. Beyond its training loops",
        f"the study takes {found['beyond_in_the_study_seconds']:.1f} s, the loop by hand",
        f"{found['beyond_by_hand_seconds']:.1f} s; listeners take {100 * found['listeners_share']:.1f}%",
        f"of a training. Together: {found['study_over_by_hand']:.3f} times the loop by hand",
        f"(as clocked {found['study_over_by_hand_as_clocked']:.2f}, but the speed of one and the same",
        f"training varied by more than that). Medians of {len(rounds)} rounds;",
        f"{machine['cores']} cores, {machine['processor']}. `{found['command']}`",
    ]
    return "\n".join(rows)


def explicit_speed_table() -> str:
    """The hand-written engine against eager PyTorch."""
    found = json.loads((ROOT / "results/explicit/speed.json").read_text(encoding="utf-8"))
    rows = [
        "| width/hidden | by hand | PyTorch, 1 thread | PyTorch, 2 threads | ratio to the better | epoch "
        "| share of the machine's matrix-product rate |",
        "|---|---|---|---|---|---|---|",
    ]
    for width, hidden in ((16, 32), (64, 128)):
        row = found[str(width)]
        rows.append(
            f"| {width}/{hidden} | {row['explicit_ms']:.2f} ms a step | {row['torch_ms_1_thread']:.2f} ms "
            f"| {row['torch_ms_2_threads']:.2f} ms | {row['ratio']:.1f} | {row['epoch_seconds']:.2f} s "
            f"| {100 * row['share_of_machine']:.0f}% |"
        )
    machine = found["environment"]
    rows += [
        "",
        f"Batch 32, {machine['cores']} cores, {machine['processor']}. `python benchmarks/explicit.py`",
    ]
    return "\n".join(rows)


def _row(seed: int, runs: list[dict[str, Any]]) -> str:
    correct = " | ".join(f"{run['correct']:,}" for run in runs)
    unseen = sorted({f"{run['unseen']['correct']:,} of {run['unseen']['total']:,}" for run in runs})
    return f"| `default`, seed {seed} | {correct} | {'; '.join(unseen)} |"


TABLES: dict[str, Callable[[], str]] = {
    "headline": headline_table,
    "answer-adder": adder_answer,
    "answer-patch-attention": patch_answer,
    "answer-sorting": sorting_answer,
    "addition": addition_table,
    "studies-speed": studies_speed_table,
    "explicit-speed": explicit_speed_table,
    "doctor-faults": faults_table,
    "doctor-limits": limits_table,
    "doctor-study": study_table,
    "doctor-sizes": sizes_table,
    "doctor-kinds": kinds_table,
    "doctor-tasks": tasks_table,
    "doctor-kinds-second": partial(kinds_table, "second"),
    "doctor-tasks-second": partial(tasks_table, "second"),
    "doctor-harmless-second": partial(harmless_table, "second"),
    "doctor-harmless": harmless_table,
    "doctor-stories": stories_table,
    "doctor-watching": watching_table,
    "doctor-diagnosis": diagnosis_table,
    "adder-heads": strongest_table,
    "adder-heads-places": places_table,
    "adder-carriers": carriers_of_the_adder,
    "ablation-speed": ablation_speed_table,
    "explorer-engine": engine_table,
    "explorer-handouts": handouts_table,
    "explorer-latency": latency_table,
    "explorer-tabs": tabs_table,
    "faults": faults_kept_table,
    "foreign-speed": foreign_table,
    "fuzz": fuzz_table,
    "hostile": hostile_summary,
    "integrity": integrity_table,
    "predict-streaming": streaming_line,
    "licences-shipped": shipped_table,
    "licences-needed": needed_table,
    "licences-optional": optional_table,
    "licences-tests": tests_table,
    "adder-missed": missed_table,
    "adder-together": together_table,
    "reference-heads": reference_table,
    "pruning-summary": pruning_summary,
    "addition-length-why": why_table,
    "lengths-memory": memory_table,
    "sorting-reported": reported_table,
    "sorting-summary": sorting_summary,
    "sorter-heads": sorter_table,
    "sorting-variance": variance_table,
    "busy": busy_table,
    "busy-torch": busy_torch_table,
    "presets": presets_table,
    "explained": explained_table,
    "pages-speed": pages_table,
    "projection-speed": projection_table,
    "reading-summary": reading_summary,
    "calibration": calibration_table,
    "wild": wild_table,
    "reading-step": step_table,
    "muon": muon_line,
    "reading-time": time_table,
    "pruning": pruning_table,
    "pruning-heads": kept_heads_table,
    "pruning-cost": pruning_cost_table,
    "pruning-alone": one_at_a_time_table,
    "patch-attention-summary": best_of_one_head,
    **COURSE,
}
"""Tables that need nothing but their name."""


if __name__ == "__main__":
    main()
