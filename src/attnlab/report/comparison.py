"""Two runs as one page."""

from pathlib import Path
from shlex import quote

from attnlab.analysis.choices import SAMPLES
from attnlab.analysis.compare import Comparison
from attnlab.figures.curves import BothCurves, curves_data, draw_both_curves
from attnlab.figures.strata import differences_data, draw_differences
from attnlab.report.page import Figure, Made, Page, Section, as_json, figure, train_command, write_page
from attnlab.runs import RunFolder
from attnlab.specs import to_json
from attnlab.tables.compare import (
    SURE,
    answers_table,
    heads_table,
    points,
    spec_table,
    told,
    training_table,
    verdict,
)

PAIRED = (
    "Both were asked the same test examples; differences are the first run minus the second, with "
    "Bonett and Price's interval (2012) and McNemar's exact test (1947)."
)


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
    losses = [told("valid_loss", run.valid_loss) for run in (one, two)]
    rights = [told("valid", run.valid) for run in (one, two)]
    reading = (
        f"{one.run} is blue and round, {two.run} orange and square; marks are validation, thin lines "
        f"training batches. The lowest validation losses are {losses[0]} and {losses[1]}; the best epochs "
        f"have {rights[0]} and {rights[1]} right."
    )
    signs = (
        "Good: the better run is also ahead on validation. Bad: it is ahead in training batches only, "
        "which is learning by heart; and losses of different tasks or of smoothed targets do not compare. "
        f"Here they took {told('steps', one.steps)} and {told('steps', two.steps)} steps."
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
