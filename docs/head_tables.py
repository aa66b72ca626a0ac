"""Tables about heads: what the commands and benchmarks on the shipped adder and its siblings found."""

import json
from pathlib import Path
from statistics import median
from typing import Any

from study_figures import WAYS

from attnlab.analysis import percent
from attnlab.analysis.ablate.ablation import AblationResult
from attnlab.analysis.ablate.effects import ALL, ranked
from attnlab.analysis.heads import HeadsResult, strongest
from attnlab.problems.addition.carries import CarryResult
from attnlab.results import Interval
from attnlab.tables.ablate import points
from attnlab.tables.patch import carriers_table, sentence

RESULTS = Path(__file__).parent.parent / "results"


def read(name: str) -> dict[str, Any]:
    """The JSON in ``results/NAME``."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def adder_heads() -> HeadsResult:
    """What ``attnlab heads zoo:adder`` found."""
    return HeadsResult.from_json(read("heads/adder.json"))


def adder_patching() -> CarryResult:
    """What ``attnlab patch zoo:adder --pairs 200 --json`` found."""
    return CarryResult.from_json(read("patching/adder.json"))


def strongest_table() -> str:
    """For each set of keys the heads that put most weight there."""
    found = adder_heads()
    return "\n".join(
        [
            "| weight on | kind | head | weight | 95% interval | uniform |",
            "|---|---|---|---|---|---|",
            *(
                f"| {best.metric.replace('_', ' ')} | {best.kind} | `{best.head}` "
                f"| {best.weight.value:.3f} | {_interval(best.weight.interval)} "
                f"| {best.weight.uniform:.3f} |"
                for best in strongest(found)
            ),
            "",
            f"{found.examples:,} {found.split} sums. `attnlab heads {found.run}`",
        ]
    )


def _interval(ends: Interval | None) -> str:
    return "" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"


def places_table() -> str:
    """Columns and carries of the decoder, by the place of the answer."""
    rows = [row for row in adder_heads().heads if row.kind != "encoder self"]
    names = ("column", "carry_in", "no_carry_in")
    weights = {
        (row.head, name, place): f"{weight:.2f}"
        for row in rows
        for name in names
        if name in row.metrics
        for place, weight in (row.metrics[name].by_place or {}).items()
    }
    columns = sorted(
        {(name, place) for _, name, place in weights}, key=lambda at: (names.index(at[0]), at[1])
    )
    lines = [
        "| head " + "".join(f"| {name.replace('_', ' ')} at {place} " for name, place in columns),
        "|---" * (1 + len(columns)),
        *(
            f"| `{row.head}` " + "".join(f"| {weights.get((row.head, *at), '')} " for at in columns)
            for row in rows
        ),
    ]
    return "|\n".join([*lines, ""])


def carriers_of_the_adder() -> str:
    """Sets of heads that carry the carry, on pairs that were not used to find them."""
    found = adder_patching()
    sentences = [f"- {sentence(found, each)}" for each in found.carriers]
    command = f"`attnlab patch {found.run} --pairs {found.columns[0].pairs}`"
    return "\n".join([carriers_table(found).to_markdown(), "", *sentences, "", command])


def ablation_speed_table() -> str:
    """Ablation of every head against the plain loop."""
    found = read("ablation/speed.json")
    machine, threads = found["environment"], found["plain_threads"]
    rows = [
        f"| {found['heads']} heads, {found['examples']:,} examples | seconds |",
        "|---|---|",
        f"| one hook and one decoding without cache a head, {threads} of torch's threads "
        f"| {found['plain_seconds']:.1f} |",
        f"| one hook and one pass by teacher forcing a head | {found['one_pass_seconds']:.1f} |",
        f"| `attnlab.analysis.ablate`, {found['threads']} workers | {found['seconds']:.1f} |",
        "",
        f"The same numbers {found['ratio']:.1f} times as fast (median of {len(found['rounds'])} rounds, "
        f"lowest {found['ratio_lowest']:.1f}); {machine['cores']} cores, {machine['processor']}. "
        f"`{found['command']}`",
    ]
    return "\n".join(rows)


def pruned_seeds() -> list[dict[str, Any]]:
    """What ``benchmarks/pruning.py`` found, by seed."""
    return [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((RESULTS / "pruning").glob("seed-*.json"))
    ]


def pruning_table() -> str:
    """Heads removed jointly, scored over all pairs."""
    found = pruned_seeds()
    first = found[0]["all_pairs"]
    plain, trained = first["without_training"], first["with_training"]
    rows = [
        f"| seed | of {first['whole']['total']:,} sums, with all {found[0]['heads']} heads "
        + "".join(f"| {len(point['removed'])} removed, no training " for point in plain)
        + "".join(f"| {len(point['removed'])} removed, trained " for point in trained)
        + "| trained for |",
        "|---" * (3 + len(plain) + len(trained)) + "|",
        *(_pairs_row(seed) for seed in found),
        "",
        f"Trained is {found[0]['steps']} steps. Fewest heads with less than a point lost on "
        f"{found[0]['examples']:,} validation sums and no training, seeds "
        f"{', '.join(str(seed['seed']) for seed in found)}: "
        + "; ".join(
            f"{WAYS[way]}: {', '.join(str(seed['fewest_kept'][way]) for seed in found)}" for way in WAYS
        )
        + f". `{found[0]['command']}`",
    ]
    return "\n".join(rows)


def _pairs_row(seed: dict[str, Any]) -> str:
    points = seed["all_pairs"]
    trained = points["with_training"]
    scored = [points["whole"], *points["without_training"], *trained]
    cells = [f"{point['correct']:,}" for point in scored]
    seconds = ", ".join(f"{point['training']['seconds']:.0f} s" for point in trained)
    return f"| {seed['seed']} | {' | '.join(cells)} | {seconds} |"


def kept_heads_table() -> str:
    """Which heads are left, by seed."""
    found = pruned_seeds()
    points = [_pruned_points(seed) for seed in found]
    rows = [
        "| seed " + "".join(f"| {len(point['kept'])} kept " for point in points[0]) + "|",
        "|---" * (1 + len(points[0])) + "|",
        *(
            f"| {seed['seed']} | " + " | ".join(_names(point["kept"]) for point in each) + " |"
            for seed, each in zip(found, points, strict=True)
        ),
    ]
    return "\n".join(rows)


def pruning_cost_table() -> str:
    """What pruned adders cost, medians over seeds."""
    found = pruned_seeds()
    pruned = [_pruned_points(seed) for seed in found]
    columns = [
        [each[0]["cost"]["before"] for each in pruned],
        *([point["cost"]["after"] for point in same] for same in zip(*pruned, strict=True)),
    ]
    heads = [found[0]["heads"], *(len(point["kept"]) for point in pruned[0])]
    rows = [
        "| heads | parameters | multiply-adds an example | a pass over "
        f"{pruned[0][0]['cost']['examples']:,} examples |",
        "|---|---|---|---|",
        *(
            f"| {count} | {median(cost['parameters'] for cost in costs):,.0f} "
            f"| {median(cost['multiply_adds'] for cost in costs):,.0f} "
            f"| {1000 * median(cost['seconds'] for cost in costs):.0f} ms |"
            for count, costs in zip(heads, columns, strict=True)
        ),
        "",
        f"Medians of {len(found)} seeds.",
    ]
    return "\n".join(rows)


def _pruned_points(seed: dict[str, Any]) -> list[dict[str, Any]]:
    return [*seed["all_pairs"]["without_training"], *seed["all_pairs"]["with_training"]]


def _names(heads: list[str]) -> str:
    return ", ".join(f"`{head}`" for head in sorted(heads))


def one_at_a_time_table() -> str:
    """Heads that do no harm alone, and what happens when all of them go."""
    found = pruned_seeds()
    rows = [
        "| seed | in the head's place | heads that cost less than a point alone | share "
        "| exact match when all of these go at once |",
        "|---|---|---|---|---|",
        *(
            f"| {seed['seed']} | {name} | {alone['heads']} of {seed['heads']} | {percent(alone['share'])} "
            f"| {percent(alone['together'])} |"
            for seed in found
            for name, alone in seed["alone"].items()
        ),
        "",
        f"{found[0]['examples']:,} validation sums. `{found[0]['command']}`",
    ]
    return "\n".join(rows)


def adder_ablation() -> AblationResult:
    """What ``attnlab ablate zoo:adder --split test --pairs --shapley 100`` found."""
    return AblationResult.from_json(read("ablation/adder.json"))


def missed_table() -> str:
    """Heads of the adder that are missed most, by what takes their place."""
    found = adder_ablation()
    rows = {name: {row.head: row for row in each} for name, each in found.baselines.items()}
    heads = ranked(found.singles.values())[:8]
    assert found.shapley is not None
    shapley = {row.head: row for row in found.shapley.heads}
    lines = [
        "| without | " + " | ".join(rows) + " | Shapley value |",
        "|---" * (2 + len(rows)) + "|",
        *(
            f"| `{head}` | "
            + " | ".join(points(rows[name][head].lost[ALL]).strip() for name in rows)
            + f" | {100 * shapley[head].value:z.2f} |"
            for head in heads
        ),
        "",
        f"Points of {percent(found.exact_match)} exact match lost, {found.examples:,} "
        f"{found.split} sums, ± half of the 95% interval; Shapley values from "
        f"{found.shapley.orders} orders. "
        f"{found.agreement} `{read('ablation/adder.json')['command']}`",
    ]
    return "\n".join(lines)


def together_table() -> str:
    """Two heads at once."""
    found = adder_ablation()
    pairs = sorted(found.pairs or [], key=lambda row: -abs(row.excess.value))[:6]
    lines = [
        "| without both | points lost | beyond the sum of each alone |",
        "|---|---|---|",
        *(
            f"| `{row.heads[0]}`, `{row.heads[1]}` | {points(row.lost).strip()} "
            f"| {points(row.excess).strip()} |"
            for row in pairs
        ),
    ]
    return "\n".join(lines)


def reference_table() -> str:
    """The reference model, zeroed head by head, counted soundly and as the reports did."""
    found = read("ablation/reference.json")
    lines = [
        "| seed | in the head's place | counted | whole model | heads that cost less than a point "
        "| most lost | right without all of these heads |",
        "|---|---|---|---|---|---|---|",
    ]
    for seed in found["seeds"]:
        for name in ("zero", "optimal"):
            for way, words in (("sound", "soundly"), ("as_reported", "as reported")):
                lost = seed[name]["lost"]
                worst = max(lost, key=lambda head: float(lost[head][way]))
                lines.append(
                    f"| {seed['seed']} | {name} | {words} | {percent(seed['whole'][way])} "
                    f"| {seed[name]['harmless'][way]} of {len(lost)} "
                    f"| {100 * lost[worst][way]:.1f} points, `{worst}` "
                    f"| {percent(seed[name]['together'][way])} |"
                )
    few = " One seed is anecdotal." if len(found["seeds"]) == 1 else ""
    return "\n".join([*lines, "", f"{found['examples']:,} test sums.{few} `{found['command']}`"])


def pruning_summary() -> str:
    """One sentence on how few heads are enough."""
    found = pruned_seeds()
    alone = [seed["alone"]["optimal"] for seed in found]
    pairs = [seed["all_pairs"] for seed in found]
    plain, trained = ([point[name][0] for point in pairs] for name in ("without_training", "with_training"))

    def least(points: list[dict[str, Any]]) -> str:
        return percent(min(point["correct"] / point["total"] for point in points))

    seconds = max(point["training"]["seconds"] for point in trained)
    fewest, left = min(each["heads"] for each in alone), max(each["together"] for each in alone)
    return (
        f"Of {found[0]['heads']} heads {fewest} or more do no harm alone; without all of these "
        f"at most {percent(left)} of sums come out right. Chosen jointly and refitted without training, "
        f"{len(plain[0]['removed'])} can go: at least {least(plain)} of all {plain[0]['total']:,} sums are "
        f"right; with at most {seconds:.0f} s of training {len(trained[0]['removed'])} can go: "
        f"{least(trained)} (the lowest of {len(found)} seeds). `{found[0]['command']}`"
    )
