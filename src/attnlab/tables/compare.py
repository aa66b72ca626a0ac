"""What ``compare`` finds: two runs side by side, and a verdict."""

from collections.abc import Iterator
from typing import Any

from attnlab.analysis import percent
from attnlab.analysis.compare import Comparison
from attnlab.figures.strata import differences_data, draw_differences
from attnlab.results import Drawing, Part, Table

SURE = 0.05
TOLD = {
    "task": "task",
    "model": "model",
    "parameters": "parameters",
    "steps": "training steps",
    "seconds": "seconds to train",
    "valid": "best validation, right",
    "valid_loss": "lowest validation loss",
}


def tables(found: Comparison) -> Iterator[Part]:
    yield training_table(found)
    if found.spec:
        yield spec_table(found)
    if found.answers.whole:
        yield answers_table(found)
    heads = heads_table(found)
    if heads is not None:
        yield heads
    yield verdict(found)


def figures(found: Comparison) -> dict[str, Drawing]:
    whole, groups = found.answers.whole, found.answers.groups
    if whole is None:
        return {}
    data = differences_data([run.run for run in found.runs], [whole, *groups])
    return {"differences": Drawing(data, draw_differences)}


def verdict(found: Comparison) -> str:
    """One sentence on which is better."""
    one, two = (run.run for run in found.runs)
    whole = found.answers.whole
    if whole is None:
        return f"Their answers cannot be paired: {found.answers.why_not}."
    low, high = whole.interval
    rights = f"{one} has {percent(whole.right[0])} and {two} {percent(whole.right[1])} right"
    told = f"of {whole.examples:,} test examples {rights}: {points(whole.difference)} points"
    ends = f"95%: {points(low)} to {points(high)}; McNemar p = {whole.p:.2g}"
    better = one if whole.difference > 0 else two
    sure = f"{better} is better" if whole.p < SURE else "No difference is shown"
    return f"{sure}: {told} ({ends})."


def points(share: float) -> str:
    """A difference of shares in points."""
    return f"{100 * share:+z.2f}"


def spec_table(found: Comparison) -> Table:
    cells = [("-" if value is None else str(value) for value in row.values) for row in found.spec]
    rows = tuple((row.key, *each) for row, each in zip(found.spec, cells, strict=True))
    return Table("What differs in their specs", ("key", *(run.run for run in found.runs)), rows)


def training_table(found: Comparison) -> Table:
    """How large they are and how they trained."""
    rows = tuple(
        (word, *(told(key, getattr(run, key)) for run in found.runs)) for key, word in TOLD.items()
    )
    return Table("Size and training", ("", *(run.run for run in found.runs)), rows)


def answers_table(found: Comparison) -> Table:
    """The whole, then each group."""
    whole, groups = found.answers.whole, found.answers.groups
    assert whole is not None
    names = [run.run for run in found.runs]
    rows = tuple(
        (
            row.group,
            f"{row.examples:,}",
            *map(percent, row.right),
            f"{row.only_first:,} / {row.only_second:,}",
            points(row.difference),
            " to ".join(map(points, row.interval)),
            f"{row.p if row.p_holm is None else row.p_holm:.2g}",
        )
        for row in (whole, *groups)
    )
    columns = ("examples", "n", *names, "only one is right", "difference", "95% interval", "p")
    return Table("The same test examples; p of groups Holm-adjusted", columns, rows)


def heads_table(found: Comparison) -> Table | None:
    """Entropies, and the strongest head for each thing to look at."""
    first, second = found.heads
    if first is None or second is None:
        return None
    both = (first, second)
    rows = [
        ("heads", *(str(each.count) for each in both)),
        ("mean entropy, 1 = uniform", *(f"{each.entropy:.2f}" for each in both)),
        ("entropy of the sharpest head", *(f"{each.sharpest:.2f}" for each in both)),
    ]
    for key in dict.fromkeys((*first.strongest, *second.strongest)):
        cells = (each.strongest.get(key) for each in both)
        rows.append((key, *("-" if cell is None else f"{cell.value:.2f} ({cell.head})" for cell in cells)))
    return Table("Heads: the strongest of each run", ("", *(run.run for run in found.runs)), tuple(rows))


def told(key: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "-"
    if key == "valid":
        return percent(value)
    if key == "valid_loss":
        return f"{value:.4f}"
    return f"{value:,.0f}"
