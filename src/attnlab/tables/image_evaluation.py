"""What ``evaluate`` finds of a model that classifies images."""

from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

from attnlab.analysis.choices import SURE
from attnlab.analysis.image_evaluation import DigitEvaluation, GridEvaluation
from attnlab.analysis.mistakes import ImageMistakes, gallery
from attnlab.analysis.statistics import percent, percent_ends
from attnlab.figures import image_evaluation as of
from attnlab.results import Drawing, Part, Table

Found = DigitEvaluation | GridEvaluation
LISTED = 10  # images that are likely mislabelled


def tables(found: Found) -> Iterator[Part]:
    title, counts, shows = "by class", "images", found.shows
    if isinstance(found, GridEvaluation):
        title, counts = f"by {shows}", "shown"
        yield from _grids(found)
    else:
        yield Table(
            f"{found.run}: {found.examples:,} {found.split} images",
            ("accuracy", "95% interval", "loss"),
            ((percent(found.exact_match), percent_ends(found.exact_match_interval), f"{found.loss:.4f}"),),
        )
    columns = (shows, counts, "correct", "95% interval", "most often taken for")
    yield Table(title, columns, tuple(_class_row(found, astuple(row)) for row in found.by_class))
    yield Table(
        f"confusions: a row is the {shows} that is shown, a column the answer",
        ("shown", *found.classes),
        tuple(
            (name, *(f"{count:,}" if count else "·" for count in row))
            for name, row in zip(found.classes, found.confusion, strict=True)
            if any(row)
        ),
    )
    yield from _remarks(found)


def figures(found: Found) -> dict[str, Drawing]:
    """Confusions and calibration; and the most confident mistakes, where their pixels are at hand."""
    made = {
        "confusions": Drawing(of.confusion_data(found.confusion, found.classes), of.draw_confusion),
        "reliability": Drawing(of.reliability_data(found.calibration), of.draw_reliability),
    }
    if found.coverage:
        made["coverage"] = Drawing(of.coverage_data(found.coverage), of.draw_coverage)
    if found.pictures is not None:
        shown = of.mistakes_data(found.pictures, gallery(found.mistakes.worst))
        made["mistakes"] = Drawing(shown, of.draw_mistakes)
    return made


def _grids(found: GridEvaluation) -> Iterator[Table]:
    """How many grids and cells are correct."""
    rows: list[tuple[str, ...]] = [
        ("whole grids correct", percent(found.exact_match)),
        ("95% interval", percent_ends(found.exact_match_interval)),
        (f"{found.shows}s correct", percent(found.digit_accuracy)),
        (f"whole grids, were {found.shows}s independent", percent(found.if_independent)),
        ("loss", f"{found.loss:.5f}"),
    ]
    columns: tuple[str, ...] = ("", "greedy decoding")
    forced = found.teacher_forced
    if forced is not None:  # not of an ensemble
        cells = (percent(forced.exact_match), "", percent(forced.token_accuracy), "", f"{forced.loss:.5f}")
        columns = (*columns, "teacher forcing")
        rows = [(*row, more) for row, more in zip(rows, cells, strict=True)]
    shape = f"{found.rows} x {found.columns} {found.shows}s"
    yield Table(f"{found.run}: {found.examples:,} {found.split} grids of {shape}", columns, tuple(rows))
    yield Table(
        "by cell, in the order of reading",
        ("row,column", "correct", "95% interval"),
        tuple(
            (row.cell, percent(row.accuracy), percent_ends(row.accuracy_interval)) for row in found.by_cell
        ),
    )


def _class_row(found: Found, row: tuple[Any, ...]) -> tuple[str, ...]:
    number, examples, correct, interval, name = row
    said = found.confusion[number]
    count, other = max((count, answer) for answer, count in enumerate(said) if answer != number)
    taken = f"{found.classes[other]} ({count:,})" if count else ""
    return name, f"{examples:,}", percent(correct), percent_ends(interval), taken


def _remarks(found: Found) -> Iterator[str]:
    sure, over = found.calibration, found.views
    much = "over" if sure.confidence > sure.accuracy else "under"
    yield (
        f"calibration: {percent(sure.accuracy)} correct at a mean probability of "
        f"{percent(sure.confidence)}, so {much}confident; "
        f"expected calibration error {percent(sure.ece)} over {len(sure.bins)} bins"
    )
    for row in found.coverage:
        if row.threshold == SURE and row.accuracy is not None:
            yield (
                f'with "not sure" below a probability of {percent(SURE)}: {percent(row.answered)} '
                f"answered, {percent(row.accuracy)} of these correctly"
            )
    yield from _mistakes(found.mistakes, found.shows)
    if over is not None:
        yield (
            f"averaged over {over.views} views, reported separately: {percent(over.exact_match)} (95%: "
            f"{percent_ends(over.exact_match_interval)}), expected calibration error {percent(over.ece)}"
        )
    if found.sample:
        yield f"WARNING: measured on {found.data}"


def _mistakes(mistakes: ImageMistakes, shows: str) -> Iterator[str]:
    """How many there are, and which may be the labels' mistakes."""
    marked = [row for row in mistakes.worst if row.likely_mislabelled]
    yield counted(mistakes, shows)
    for row in marked[:LISTED]:
        yield (
            f"  {row.name}: labelled {row.labelled}, read as {row.read_as} (p = {percent(row.probability)})"
        )
    if len(marked) > LISTED:
        yield f"  and {len(marked) - LISTED:,} more, which JSON lists"


def counted(mistakes: ImageMistakes, shows: str) -> str:
    """How many cells are misclassified and likely mislabelled, and among how many that was looked at."""
    count, looked, likely = mistakes.count, mistakes.looked_at, mistakes.likely_mislabelled
    wrong = f"{count:,} {shows}s misclassified{_different(count, mistakes.distinct)}"
    labels = f"{likely:,}{_different(likely, mistakes.distinct_mislabelled)}"
    of_them = f"the {looked:,} most confident, which alone were looked at," if looked < count else "them"
    return f"{wrong}, {labels} of {of_them} likely mislabelled"


def _different(count: int, distinct: int) -> str:
    return f" ({distinct:,} different ones)" if distinct < count else ""
