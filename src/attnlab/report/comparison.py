"""Two runs as one result, and as one page."""

from pathlib import Path
from shlex import quote
from typing import Any

from attnlab.analysis import percent
from attnlab.analysis.choices import SAMPLES
from attnlab.analysis.compare import Comparison
from attnlab.figures.curves import BothCurves, curves_data, draw_both_curves
from attnlab.figures.strata import differences_data, draw_differences
from attnlab.report.page import Figure, Made, Page, Section, as_json, figure, train_command, write_page
from attnlab.results import Table
from attnlab.runs import RunFolder
from attnlab.specs import to_json

SURE = 0.05
PAIRED = (
    "Both were asked the same test examples; differences are the first run minus the second, with "
    "Bonett and Price's interval (2012) and McNemar's exact test (1947)."
)
TOLD = {
    "task": "task",
    "model": "model",
    "parameters": "parameters",
    "steps": "training steps",
    "seconds": "seconds to train",
    "valid": "best validation, right",
    "valid_loss": "lowest validation loss",
}


def write_comparison(
    found: Comparison, runs: tuple[RunFolder, RunFolder], path: Path, *, samples: int = SAMPLES
) -> Path:
    """Write the page about ``found``, which was asked for with ``samples``, to ``path``."""
    words = ["attnlab", "compare", *(run.called for run in runs), "--out", str(path)]
    words += [] if samples == SAMPLES else ["--samples", str(samples)]
    page = Page(
        title=" and ".join(run.name for run in runs),
        what="Two runs side by side.",
        proof=verdict(found),
        notes=[PAIRED] if found.answers.whole else [],
        sections=_sections(found, runs),
        made=Made(
            [
                *((f"This trains {run.name} again:", train_command(run.spec())) for run in runs),
                ("This wrote the page:", " ".join(map(quote, words))),
            ],
            [(f"spec-{number}.json", as_json(to_json(run.spec()))) for number, run in enumerate(runs, 1)],
        ),
    )
    return write_page(page, path)


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


def comparison_tables(found: Comparison) -> list[Table]:
    """All that there is to say in tables."""
    answers = answers_table(found) if found.answers.whole else None
    every = (training_table(found), spec_table(found) if found.spec else None, answers, heads_table(found))
    return [table for table in every if table is not None]


def spec_table(found: Comparison) -> Table:
    cells = [("-" if value is None else str(value) for value in row.values) for row in found.spec]
    rows = tuple((row.key, *each) for row, each in zip(found.spec, cells, strict=True))
    return Table("What differs in their specs", ("key", *(run.run for run in found.runs)), rows)


def training_table(found: Comparison) -> Table:
    """How large they are and how they trained."""
    rows = tuple(
        (word, *(_told(key, getattr(run, key)) for run in found.runs)) for key, word in TOLD.items()
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


def _told(key: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "-"
    if key == "valid":
        return percent(value)
    if key == "valid_loss":
        return f"{value:.4f}"
    return f"{value:,.0f}"


def _sections(found: Comparison, runs: tuple[RunFolder, RunFolder]) -> list[Section]:
    same = [] if found.spec else ["Their specs are equal."]
    tables = [training_table(found), *([spec_table(found)] if found.spec else [])]
    sections = [
        Section("spec", "What they are", same, tables=tables),
        Section("trained", "How they trained", figures=[_curves(found, runs)]),
    ]
    if found.answers.whole:
        title, tables = "Which is better, and where", [answers_table(found)]
        sections.append(Section("good", title, figures=[_differences(found)], tables=tables))
    heads = heads_table(found)
    if heads is not None:
        sections.append(Section("heads", "Their heads", tables=[heads]))
    return sections


def _curves(found: Comparison, runs: tuple[RunFolder, RunFolder]) -> Figure:
    data = BothCurves([curves_data(run.metrics(), run.name) for run in runs])
    one, two = found.runs
    losses = [_told("valid_loss", run.valid_loss) for run in (one, two)]
    rights = [_told("valid", run.valid) for run in (one, two)]
    reading = (
        f"{one.run} is blue and round, {two.run} orange and square; marks are validation, thin lines "
        f"training batches. The lowest validation losses are {losses[0]} and {losses[1]}; the best epochs "
        f"have {rights[0]} and {rights[1]} right."
    )
    signs = (
        "Good: the better run is also ahead on validation. Bad: it is ahead in training batches only, "
        "which is learning by heart; and losses of different tasks or of smoothed targets do not compare. "
        f"Here they took {_told('steps', one.steps)} and {_told('steps', two.steps)} steps."
    )
    return figure("curves", "Loss and right answers", data, draw_both_curves, reading, signs)


def _differences(found: Comparison) -> Figure:
    groups, whole = found.answers.groups, found.answers.whole
    assert whole is not None
    data = differences_data([run.run for run in found.runs], [whole, *groups])
    widest = max(groups, key=lambda row: abs(row.difference))
    sure = [row for row in groups if row.p_holm is not None and row.p_holm < SURE]
    reading = (
        "Left, how often each is right; right, the difference with its 95% interval, right of 0 where "
        f"{data.runs[0]} is better. They differ most in {widest.group}: "
        f"{points(widest.difference)} points of {widest.examples:,} examples."
    )
    signs = (
        "Good: intervals on one side of 0, all on the same. Bad: intervals across 0, which show nothing, "
        f"or a better mean with a group that got worse. Here {len(sure)} of {len(groups)} groups differ "
        f"surely (p below {SURE:g} after Holm's adjustment)."
    )
    return figure("differences", "The same examples", data, draw_differences, reading, signs)
