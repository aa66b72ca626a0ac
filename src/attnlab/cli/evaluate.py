"""``attnlab evaluate``: how good a run is on data it was not trained on."""

from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.analysis.choices import check_views
from attnlab.analysis.statistics import percent, percent_ends
from attnlab.cli.drawing import figures_folder
from attnlab.cli.output import print_result, print_table, tell
from attnlab.cli.parsing import Json, Positional
from attnlab.display import Meter, say
from attnlab.front.run import load
from attnlab.runs import Ensemble, RunFolder, find_ensemble, open_run
from attnlab.specs import Split

if TYPE_CHECKING:
    from attnlab.analysis.image_classifier import ImageClassifier
    from attnlab.analysis.image_evaluation import DigitEvaluation, GridEvaluation, ImageEvaluation
    from attnlab.analysis.mistakes import ImageMistakes

LISTED = 10  # images that are likely mislabelled


def command(
    run: Positional[str],
    *,
    split: Split = "test",
    views: int = 1,
    out: str = "",
    json: Json = False,
) -> None:
    """Measure a run: sums by greedy decoding, carry chain and column, lists by length, digits by class with
    calibration and mistakes, grids of digits by cell too.

    Example: attnlab evaluate zoo:adder

    Args:
        run: A run folder, a shipped run such as zoo:adder, or the folder of an ensemble.
        split: Which examples; choose by valid, report test.
        views: Read each image also 4 or 8 times moved by a pixel, and tell the average apart: 5 or 9.
        out: Folder for the figures of digits (SVG, PNG, JSON); by default figures in the run folder, none
            for a shipped run.
    """
    check_views(views)
    opened = find_ensemble(run) or open_run(run)
    if isinstance(opened, Ensemble) or opened.spec().task.images:
        _evaluate_images(opened, split, views, out, json=json)
        return
    print_result(load(opened).evaluate(split=split, views=views), json=json)


def _evaluate_images(
    opened: RunFolder | Ensemble, split: Split, views: int, out: str, *, json: bool
) -> None:
    """The same for images, which are also drawn: confusions, calibration, mistakes."""
    from attnlab.analysis.image_classifier import open_classifier
    from attnlab.analysis.image_evaluation import evaluate_reader, measure_views

    reader = open_classifier(opened)
    with Meter("reading", 1) as meter:
        found = replace(evaluate_reader(reader, split, progress=meter.update), run=opened.name)
    if isinstance(opened, RunFolder):
        opened.keep(f"evaluate-{split}", found)
        folder = figures_folder(opened, out)
    else:
        folder = Path(out) if out else opened.path / "figures"
    if views > 1:
        with Meter("reading views", views) as meter:
            found = replace(found, views=measure_views(reader, split, views, progress=meter.update))
    tell(found, partial(show_images, shows=reader.task.shows), json=json)
    if folder is not None:
        _draw(found, reader, folder)
    if found.sample:
        say(f"WARNING: measured on {found.data}")


def show_images(found: "DigitEvaluation | GridEvaluation", shows: str) -> None:
    """Print what ``evaluate`` found of a run that reads images, whose cells are called ``shows``."""
    from attnlab.analysis.image_evaluation import GridEvaluation

    title, counts = "by class", "images"
    if isinstance(found, GridEvaluation):
        title, counts = f"by {shows}", "shown"
        show_grids(found)
    else:
        print_table(
            f"{found.run}: {found.examples:,} {found.split} images",
            ("accuracy", "95% interval", "loss"),
            [(percent(found.exact_match), percent_ends(found.exact_match_interval), f"{found.loss:.4f}")],
        )
    columns = (shows, counts, "right", "95% interval", "most often taken for")
    print_table(title, columns, [_class_row(found, astuple(row)) for row in found.by_class])
    print_table(
        f"confusions: a row is the {shows} that is shown, a column the answer",
        ("shown", *found.classes),
        [
            (name, *(f"{count:,}" if count else "·" for count in row))
            for name, row in zip(found.classes, found.confusion, strict=True)
            if any(row)
        ],
    )
    sure, over = found.calibration, found.views
    print(
        f"calibration: {percent(sure.accuracy)} right at a mean probability of "
        f"{percent(sure.confidence)}, so {'more' if sure.confidence > sure.accuracy else 'less'} sure than "
        f"right;\nexpected calibration error {percent(sure.ece)} over {len(sure.bins)} bins\n"
    )
    show_mistakes(found.mistakes, shows)
    if over is not None:
        print(
            f"averaged over {over.views} views, which is told apart: {percent(over.exact_match)} (95%: "
            f"{percent_ends(over.exact_match_interval)}), expected calibration error {percent(over.ece)}"
        )


def show_grids(found: "GridEvaluation") -> None:
    """Print how many grids and cells are right."""
    rows: list[tuple[str, ...]] = [
        ("grids wholly right", percent(found.exact_match)),
        ("95% interval", percent_ends(found.exact_match_interval)),
        ("digits right", percent(found.digit_accuracy)),
        ("grids, were digits independent", percent(found.if_independent)),
        ("loss", f"{found.loss:.5f}"),
    ]
    columns = ["", "greedy decoding"]
    forced = found.teacher_forced
    if forced is not None:  # not of an ensemble
        right = (percent(forced.exact_match), "", percent(forced.token_accuracy), "")
        columns.append("teacher forcing")
        rows = [(*row, more) for row, more in zip(rows, (*right, f"{forced.loss:.5f}"), strict=True)]
    shape = f"{found.rows} x {found.columns}"
    print_table(f"{found.run}: {found.examples:,} {found.split} grids of {shape} digits", columns, rows)
    print_table(
        "by cell, in the order of reading",
        ("row,column", "right", "95% interval"),
        [(row.cell, percent(row.accuracy), percent_ends(row.accuracy_interval)) for row in found.by_cell],
    )


def _class_row(found: "ImageEvaluation", row: tuple[Any, ...]) -> tuple[str, ...]:
    digit, examples, right, interval, name = row
    said = found.confusion[digit]
    count, other = max((count, answer) for answer, count in enumerate(said) if answer != digit)
    taken = f"{found.classes[other]} ({count:,})" if count else ""
    return name, f"{examples:,}", percent(right), percent_ends(interval), taken


def show_mistakes(mistakes: "ImageMistakes", shows: str) -> None:
    """Print how many there are, and which may be the labels' mistakes."""
    marked = [row for row in mistakes.worst if row.likely_mislabelled]
    print(counted(mistakes, shows))
    for row in marked[:LISTED]:
        print(
            f"  {row.name}: labelled {row.labelled}, read as {row.read_as} (p = {percent(row.probability)})"
        )
    if len(marked) > LISTED:
        print(f"  and {len(marked) - LISTED:,} more; --json prints all")


def counted(mistakes: "ImageMistakes", shows: str) -> str:
    """How many cells are read wrongly and likely mislabelled, and of how many that was asked."""
    count, looked, likely = mistakes.count, mistakes.looked_at, mistakes.likely_mislabelled
    wrong = f"{count:,} {shows}s read wrongly{_different(count, mistakes.distinct)}"
    told = f"{likely:,}{_different(likely, mistakes.distinct_mislabelled)}"
    of = f"the {looked:,} most confident, which alone were looked at," if looked < count else "them"
    return f"{wrong}, {told} of {of} likely mislabelled"


def _different(count: int, distinct: int) -> str:
    return f" ({distinct:,} different ones)" if distinct < count else ""


def _draw(found: "ImageEvaluation", reader: "ImageClassifier", folder: Path) -> None:
    """Draw confusions, calibration, and the most confident mistakes with all that are marked."""
    from attnlab.analysis.mistakes import mistaken_digits
    from attnlab.figures import image_evaluation as figures
    from attnlab.figures.style import write_figure

    confusions = figures.confusion_data(found.confusion, found.classes)
    reliability = figures.reliability_data(found.calibration)
    worst, name = figures.gallery(found.mistakes.worst), found.split
    shown = figures.mistakes_data(mistaken_digits(reader, name, worst), worst)
    write_figure(folder, f"{name}-confusions", confusions, figures.draw_confusion(confusions))
    write_figure(folder, f"{name}-reliability", reliability, figures.draw_reliability(reliability))
    write_figure(folder, f"{name}-mistakes", shown, figures.draw_mistakes(shown))
    say(f"figures: {folder / name}-confusions, -reliability and -mistakes (svg, png, json)")
