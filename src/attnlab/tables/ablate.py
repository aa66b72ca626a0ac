"""What ``ablate`` finds: points lost without each head, by what takes its place."""

from collections.abc import Iterator

from attnlab.analysis import percent, plural
from attnlab.analysis.ablate.ablation import AblationResult
from attnlab.analysis.ablate.effects import ALL, ranked
from attnlab.figures import ablation as of
from attnlab.results import Drawing, Estimate, Part, Table

SHOWN = 12  # pairs of heads in a table


def tables(found: AblationResult) -> Iterator[Part]:
    yield _heads(found)
    if found.examples == 1:
        yield _needed(found)
        return
    yield Table(
        f"lose most without them, towards {found.towards}",
        ("by", "head", "points lost"),
        tuple(
            (row.group, row.head or "no head surely", points(row.lost) if row.head else "")
            for row in found.hardest_hit[found.towards]
        ),
    )
    yield from _pairs(found)
    yield from _shapley(found)
    if found.agreement:
        yield found.agreement


def figures(found: AblationResult) -> dict[str, Drawing]:
    made = {
        "ablation": Drawing(of.ablation_data(found), of.draw_ablation),
        "ablation-groups": Drawing(of.groups_data(found), of.draw_groups),
    }
    if found.pairs is not None:
        made["ablation-pairs"] = Drawing(of.pairs_data(found), of.draw_pairs)
    if found.shapley is not None:
        made["ablation-shapley"] = Drawing(of.shapley_data(found), of.draw_shapley)
    return made


def _heads(found: AblationResult) -> Table:
    """A row a head, the worst loss first. The rise of the loss is that towards the first baseline."""
    lost = {
        name: {row.head: points(row.lost[ALL]) for row in rows} for name, rows in found.baselines.items()
    }
    whose = f"{found.run}, " if found.run else ""
    split = found.split or ""
    count = plural(found.examples, f"{split} example".strip())
    spread = "; ± half of the 95% interval" if found.examples > 1 else ""
    return Table(
        f"{whose}{percent(found.exact_match)} of {count}: points lost without each head, by what takes its "
        f"place{spread}",
        ("head", *lost, "rise of loss"),
        tuple(
            (
                head,
                *(cells[head] for cells in lost.values()),
                f"{found.singles[head].loss_rise.value:z.4f}",
            )
            for head in ranked(found.singles.values())
        ),
    )


def _needed(found: AblationResult) -> str:
    """The heads without which the one example is not right any more: of one there are no intervals."""
    heads = [head for head in ranked(found.singles.values()) if found.singles[head].lost[ALL].value > 0]
    if not heads:
        return f"Without any one head, towards {found.towards}, the answer stays."
    return f"Without {' or '.join(heads)} alone, towards {found.towards}, the answer is another one."


def _pairs(found: AblationResult) -> Iterator[Part]:
    """The pairs that differ most from the sum of both."""
    if found.pairs is None:
        return
    shown = sorted(found.pairs, key=lambda row: -abs(row.excess.value))[:SHOWN]
    yield Table(
        f"two heads at once, towards {found.towards}: the {len(shown)} of {len(found.pairs)} pairs "
        "farthest from the sum of both",
        ("heads", "points lost", "beyond the sum"),
        tuple((" and ".join(row.heads), points(row.lost), points(row.excess)) for row in shown),
    )
    for row in (found.only_together or [])[:SHOWN]:
        yield f"{' and '.join(row.heads)} matter only together: {points(row.lost)} points are lost"


def _shapley(found: AblationResult) -> Iterator[Part]:
    """Shapley values beside what is lost without the head alone."""
    if found.shapley is None:
        return
    shapley, alone = found.shapley, found.singles
    yield Table(
        f"Shapley values in points, ± standard error, from {shapley.orders} orders, towards "
        f"{found.towards}; together {100 * (shapley.whole - shapley.none):z.2f}",
        ("head", "Shapley value", "lost without it alone"),
        tuple(
            (row.head, f"{100 * row.value:z.2f} {_half(row.error)}", points(alone[row.head].lost[ALL]))
            for row in shapley.ranked
        ),
    )
    if found.only_in_company:
        yield f"Missed only when others are missing too: {', '.join(found.only_in_company)}"


def points(cell: Estimate) -> str:
    """A share in percentage points, with half of its interval."""
    half = None if cell.interval is None else (cell.interval[1] - cell.interval[0]) / 2
    return f"{100 * cell.value:z.2f} {_half(half)}"


def _half(half: float | None) -> str:
    return f"{'' if half is None else f'±{100 * half:.2f}':<5}"
