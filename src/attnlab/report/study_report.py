"""The page about a study: its question, every seed of every variant, and what may be concluded."""

from pathlib import Path

from attnlab.figures.patching import draw_grids
from attnlab.figures.studies import (
    draw_factors,
    draw_seeds,
    draw_variants,
    factors_data,
    matched_data,
    seeds_data,
    variants_data,
)
from attnlab.report.page import Figure, Made, Page, Section, as_json, figure, write_page
from attnlab.studies.outcome import StudyResult
from attnlab.tables.study import notes, show_difference, show_value, study_tables

SURE = 0.05
"""p, Holm-adjusted, below which a difference counts."""


def write_study_report(result: StudyResult, path: Path, *, command: str) -> Path:
    """Write the page about ``result`` to ``path``; ``command`` is the one that does so."""
    runs = result.runs
    more = {_curves: result.curves, _factors: result.factors, _matched: result.heads}
    figures = [_seeds(result), *(of(result) for of, there in more.items() if there)]
    page = Page(
        title=result.study,
        what=f"A study: {result.question}",
        proof=_verdict(result),
        notes=notes(result),
        cards=[
            (str(len(result.variants)), "variants"),
            (str(len(result.seeds)), "seeds"),
            (f"{runs.finished:,} of {runs.wanted:,}", "runs finished"),
        ],
        sections=[
            Section("result", "What came out", figures=figures),
            Section("numbers", "All numbers", tables=study_tables(result)),
        ],
        made=Made(
            [
                *([("This trains and measures all of it:", result.command)] if result.command else []),
                ("This wrote the page:", command),
            ],
            [("study.json", as_json(result.to_json()))],
            result.environment.to_json(),
        ),
    )
    return write_page(page, path)


def _verdict(result: StudyResult) -> str:
    """The best variant by the first measure, and whether it surely differs from the baseline."""
    measure = result.measures[0]
    known = [
        (mean, variant.name)
        for variant in result.variants
        if (mean := variant.measures[measure.name].mean) is not None
    ]
    if not known:
        return "No run has a result yet."
    best = (max if measure.better == "higher" else min)(mean for mean, _ in known)
    names = [name for mean, name in known if mean == best]
    which = names[0] if len(names) == 1 else f"{len(names)} of {len(known)} variants alike"
    return f"Best by {measure.title}: {which}, {show_value(best, measure.unit)}."


def _seeds(result: StudyResult) -> Figure:
    data = seeds_data(result)
    measure = result.measures[0]
    spreads = [
        (max(known) - min(known), variant.name)
        for variant in result.variants
        if (known := variant.measures[measure.name].known)
    ]
    widest = max(spreads, default=(0.0, "none"))
    reading = (
        f"A panel is a measure, a row a variant, a dot one of {len(result.seeds)} seeds; below the dots "
        "stand the mean and its 95% interval. The seeds of "
        f"{widest[1]} lie furthest apart in {measure.title}: {show_value(widest[0], measure.unit)}."
    )
    touch = "each other" if result.baseline is None else "the baseline's line"
    signs = (
        f"Good: dots of a variant close together, and intervals that do not touch {touch}. Bad: one seed "
        f"far from the others, or intervals that overlap, which prove nothing. Here {_differing(result)}."
    )
    return figure("seeds", "Every seed", data, draw_seeds, reading, signs)


def _differing(result: StudyResult) -> str:
    rows = [(row.p_holm, row) for row in result.differences if row.p_holm is not None]
    if not rows:
        return "there is no paired difference with a p value"
    sure = [(p, row) for p, row in rows if p < SURE]
    told = f"{len(sure)} of {len(rows)} paired differences from {result.baseline} have p below {SURE:g}"
    if sure:
        _, least = min(sure, key=lambda pair: pair[0])
        words = result.words(least.measure)
        told += f", first {least.variant} in {words.title}: {show_difference(least.mean, words.unit)}"
    return told


def _curves(result: StudyResult) -> Figure:
    data = variants_data(result)
    ends = [
        (line.mean[-1], line.variant, line.at[-1], panel.title)
        for panel in data.panels
        if panel.unit == "share"
        for line in panel.lines
        if line.mean
    ]
    reading = (
        f"A line is the mean of {data.seeds} seeds of a variant, the band goes from its lowest seed to "
        f"its highest, over {data.panels[0].over}."
    )
    signs = "Good: lines that stay high to the right, in narrow bands. Bad: lines that fall, or wide bands."
    if ends:
        high, low = max(ends), min(ends)
        signs += (
            f" Here {high[1]} ends highest, at {high[0]:.1f}% ({high[3]}, {high[2]:,}), and {low[1]} "
            f"lowest, at {low[0]:.1f}%."
        )
    return figure("variants", "Curves", data, draw_variants, reading, signs)


def _factors(result: StudyResult) -> Figure:
    data = factors_data(result)
    panel = data.panels[0]
    parts = dict(zip((*data.names, "both together", "seeds"), panel.variance, strict=True))
    most = max(parts, key=parts.__getitem__)
    cells = [
        (value, row, column)
        for row, line in zip(data.rows, panel.percent, strict=True)
        for column, value in zip(data.columns, line, strict=True)
    ]
    best = max(cells)
    reading = (
        f"A cell is the mean of {data.seeds} seeds for one {data.names[0]} and one "
        f"{data.names[1]}; the bars are the parts of the variance that each explains. The best cell of "
        f"the first panel is {best[1]}, {best[2]}: {best[0]:.1f}%."
    )
    signs = (
        "Good: one factor explains nearly all, so that there is one thing to choose. Bad: the seeds do, "
        f"and then nothing was shown. Here {most} explains most, {parts[most]:.0f}%; seeds "
        f"{parts['seeds']:.0f}%."
    )
    return figure("factors", "What explains the differences", data, draw_factors, reading, signs)


def _matched(result: StudyResult) -> Figure:
    assert result.heads
    data = matched_data(result.heads[0])
    distances = [kind.distance for variant in result.heads for kind in variant.kinds]
    near = sum(each.matched < each.dealt for each in distances)
    reading = (
        "Heads of different seeds, matched by what they do; a column is a group of matched heads, darker "
        "means more of it in this group."
    )
    signs = (
        "Good: matched heads are nearer to each other than heads dealt at random, so the same heads come "
        f"again. Bad: they are not. Here they are nearer in {near} of {len(distances)} kinds of attention."
    )
    return figure("matched", "Heads that come again", data, draw_grids, reading, signs)
