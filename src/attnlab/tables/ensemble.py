"""What runs of an ensemble are worth alone and together."""

from collections.abc import Iterator

from attnlab.analysis.image_evaluation import EnsembleScores, Scores
from attnlab.analysis.statistics import percent, percent_ends
from attnlab.results import Part, Table


def tables(found: EnsembleScores) -> Iterator[Part]:
    rows = [
        (row.run, "yes" if row.chosen else "no", percent(row.valid.exact_match), *_tested(row.test))
        for row in found.members
    ]
    yield Table(
        f"{found.test.examples:,} test images, all of it correct",
        ("run", "taken", "validation", "test", "95% interval", "loss", "ECE"),
        (*rows, ("together", "", "", *_tested(found.test))),
    )
    differ, against = found.disagreement, found.against_the_best
    yield (
        f"two of the runs differ on {percent(differ.pairs)} of the images, and some of them on "
        f"{percent(differ.any)}"
    )
    yield (
        f"together they correct {against.mended:,} mistakes of the best run and make "
        f"{against.spoiled:,} that it does not make"
    )


def _tested(row: Scores) -> tuple[str, ...]:
    interval = percent_ends(row.exact_match_interval)
    return percent(row.exact_match), interval, f"{row.loss:.4f}", percent(row.ece)
