"""``attnlab ablate``: what is lost when heads are taken out."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.analysis import percent
from attnlab.analysis.choices import BaselineName
from attnlab.cli.drawing import Figures, figure_name, show_and_draw, write_figures
from attnlab.cli.output import in_parts, meters, print_table
from attnlab.cli.parsing import Json, RunName, Seed
from attnlab.runs import open_run
from attnlab.spec import Split

if TYPE_CHECKING:
    from attnlab.analysis.ablate.ablation import AblationResult
    from attnlab.results import Estimate

SHOWN = 12  # pairs of heads in a table


def command(
    run: RunName,
    *,
    baselines: tuple[BaselineName, ...] = ("optimal", "mean", "zero", "resample"),
    heads: tuple[str, ...] = (),
    pairs: bool = False,
    shapley: int = 0,
    split: Split = "valid",
    examples: int = 2000,
    seed: Seed = 0,
    out: str = "",
    json: Json = False,
) -> int:
    """Take out every head, alone and together with others, and measure what is lost.

    A head is taken out by putting a baseline in the place of its output: nothing (zero), its mean over
    training examples, its output for another example (resample), or the constant with the lowest loss
    (optimal). What is lost is exact match by greedy decoding, in points of percent.

    Example: attnlab ablate zoo:adder --baselines mean zero --pairs --shapley 50 --out figures

    Args:
        baselines: Towards what; heads are ranked, paired and valued by the first.
        heads: Only these heads, such as decoder.0.cross.2.
        pairs: Also take out every two heads at once.
        shapley: Also estimate Shapley values from so many orders of the heads.
        split: Which examples.
        examples: How many of them, at most.
        seed: For what is drawn at random: orders, who is resampled, batches for the optimal constant.
        out: Folder for the figures (SVG, PNG, JSON); by default figures in the run folder, and none for a
            shipped run.
    """
    opened = open_run(run)
    from attnlab.analysis.ablate.ablation import Ablation, ablate_run

    plan = Ablation(baselines=baselines, heads=heads, pairs=pairs, orders=shapley, seed=seed)
    with meters() as stages:
        found = ablate_run(opened, plan, split=split, count=examples, stages=stages)
    name = "ablation" if out else figure_name("ablation", opened, f"ablate-{split}", found, "examples")
    return show_and_draw(found, opened, json=json, show=show, out=out, write=partial(write, name=name))


def show(found: "AblationResult") -> None:
    show_heads(found)
    print_table(
        f"missed most, towards {found.towards}",
        ("by", "head", "points lost"),
        [
            (row.group, row.head or "no head surely", points(row.lost) if row.head else "")
            for row in found.hardest_hit[found.towards]
        ],
    )
    if found.pairs is not None:
        show_pairs(found)
    if found.shapley is not None:
        show_shapley(found)
    if found.agreement:
        print(found.agreement)


def show_heads(found: "AblationResult") -> None:
    """A row a head, the worst loss first; as many tables as the terminal's width needs.

    The rise of the loss is that towards the first baseline.
    """
    from attnlab.analysis.ablate.effects import ALL, ranked

    heads = ranked(found.singles.values())
    lost = {
        name: {row.head: points(row.lost[ALL]) for row in rows} for name, rows in found.baselines.items()
    }
    columns = {name: [cells[head] for head in heads] for name, cells in lost.items()}
    columns["rise of loss"] = [f"{found.singles[head].loss_rise.value:z.4f}" for head in heads]
    examples = f"{percent(found.exact_match)} of {found.examples:,} {found.split} examples"
    for part in in_parts([*columns], max(map(len, heads))):
        print_table(
            f"{found.run}, {examples}: points lost without each head, by what takes its place; "
            "± half of the 95% interval",
            ("head", *part),
            [(head, *(columns[name][place] for name in part)) for place, head in enumerate(heads)],
        )


def show_pairs(found: "AblationResult") -> None:
    """The pairs that differ most from the sum of both."""
    pairs = sorted(found.pairs or [], key=lambda row: -abs(row.excess.value))
    shown = pairs[:SHOWN]
    print_table(
        f"two heads at once, towards {found.towards}: the {len(shown)} of {len(pairs)} pairs farthest "
        "from the sum of both",
        ("heads", "points lost", "beyond the sum"),
        [(" and ".join(row.heads), points(row.lost), points(row.excess)) for row in shown],
    )
    for row in (found.only_together or [])[:SHOWN]:
        print(f"{' and '.join(row.heads)} matter only together: {points(row.lost)} points are lost")


def show_shapley(found: "AblationResult") -> None:
    """Shapley values beside what is lost without the head alone."""
    from attnlab.analysis.ablate.effects import ALL

    shapley, alone = found.shapley, found.singles
    assert shapley is not None
    print_table(
        f"Shapley values in points, ± standard error, from {shapley.orders} orders, towards "
        f"{found.towards}; together {100 * (shapley.whole - shapley.none):z.2f}",
        ("head", "Shapley value", "lost without it alone"),
        [
            (row.head, f"{100 * row.value:z.2f} {_half(row.error)}", points(alone[row.head].lost[ALL]))
            for row in shapley.ranked
        ],
    )
    if found.only_in_company:
        print(f"Missed only when others are missing too: {', '.join(found.only_in_company)}")


def points(cell: "Estimate") -> str:
    """A share in points, with half of its interval."""
    half = None if cell.interval is None else (cell.interval[1] - cell.interval[0]) / 2
    return f"{100 * cell.value:z.2f} {_half(half)}"


def _half(half: float | None) -> str:
    return f"{'' if half is None else f'±{100 * half:.2f}':<5}"


def write(found: "AblationResult", folder: Path, *, name: str) -> None:
    from attnlab.figures import ablation as of

    figures: Figures[AblationResult] = {
        name: (of.ablation_data, of.draw_ablation),
        f"{name}-groups": (of.groups_data, of.draw_groups),
    }
    if found.pairs is not None:
        figures[f"{name}-pairs"] = of.pairs_data, of.draw_pairs
    if found.shapley is not None:
        figures[f"{name}-shapley"] = of.shapley_data, of.draw_shapley
    write_figures(folder, found, figures)
