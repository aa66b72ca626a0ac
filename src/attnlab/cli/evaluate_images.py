"""``attnlab evaluate`` for readers of digits: confusions, calibration, mistakes, and their figures."""

from pathlib import Path

from attnlab.analysis import percent
from attnlab.analysis.image_classifier import ImageClassifier
from attnlab.analysis.image_evaluation import ImageEvaluation
from attnlab.analysis.mistakes import ImageMistakes, mistaken_digits
from attnlab.cli.output import print_table, say
from attnlab.figures.calibration import draw_reliability, reliability_data
from attnlab.figures.digits import confusion_data, draw_confusion
from attnlab.figures.mistakes import draw_mistakes, gallery, mistakes_data
from attnlab.figures.style import write_figure

LISTED = 10


def show_confusions(found: ImageEvaluation) -> None:
    """Print which digits are taken for which."""
    print_table(
        "confusions: a row is the digit that is shown, a column the answer",
        ("shown", *found.classes),
        [
            (name, *(f"{count:,}" if count else "·" for count in row))
            for name, row in zip(found.classes, found.confusion, strict=True)
            if any(row)
        ],
    )


def show_calibration(found: ImageEvaluation) -> None:
    """Print whether the model is as often right as it is sure."""
    sure = found.calibration
    word = "more" if sure.confidence > sure.accuracy else "less"
    print(
        f"calibration: {percent(sure.accuracy)} right at a mean probability of "
        f"{percent(sure.confidence)}, so {word} sure than right;\n"
        f"expected calibration error {percent(sure.ece)} over {len(sure.bins)} bins\n"
    )


def show_mistakes(found: ImageEvaluation) -> None:
    """Print how many there are, and which may be the labels' mistakes."""
    marked = [row for row in found.mistakes.worst if row.likely_mislabelled]
    print(counted(found.mistakes))
    for row in marked[:LISTED]:
        print(
            f"  {row.name}: labelled {row.labelled}, read as {row.read_as} (p = {percent(row.probability)})"
        )
    if len(marked) > LISTED:
        print(f"  and {len(marked) - LISTED:,} more; --json prints all")


def counted(mistakes: ImageMistakes) -> str:
    """How many digits are read wrongly and likely mislabelled, and of how many that was asked."""
    count, looked, likely = mistakes.count, mistakes.looked_at, mistakes.likely_mislabelled
    wrong = f"{count:,} digits read wrongly{_different(count, mistakes.distinct)}"
    told = f"{likely:,}{_different(likely, mistakes.distinct_mislabelled)}"
    of = f"the {looked:,} most confident, which alone were looked at," if looked < count else "them"
    return f"{wrong}, {told} of {of} likely mislabelled"


def _different(count: int, distinct: int) -> str:
    return f" ({distinct:,} different ones)" if distinct < count else ""


def write_figures(found: ImageEvaluation, reader: ImageClassifier, folder: Path) -> None:
    """Draw confusions, calibration, and the most confident mistakes with all that are marked."""
    confusions = confusion_data(found.confusion, found.classes)
    reliability = reliability_data(found.calibration)
    worst, name = gallery(found.mistakes.worst), found.split
    shown = mistakes_data(mistaken_digits(reader, name, worst), worst)
    write_figure(folder, f"{name}-confusions", confusions, draw_confusion(confusions))
    write_figure(folder, f"{name}-reliability", reliability, draw_reliability(reliability))
    write_figure(folder, f"{name}-mistakes", shown, draw_mistakes(shown))
    say(f"figures: {folder / name}-confusions, -reliability and -mistakes (svg, png, json)")
