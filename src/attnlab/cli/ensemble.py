"""``attnlab ensemble``: runs that answer together."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from attnlab.analysis.statistics import percent, percent_ends
from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import Json, Positional
from attnlab.display import Meter, say
from attnlab.errors import InputError
from attnlab.runs import check_unused, create_ensemble, open_run, unused_path

if TYPE_CHECKING:
    from attnlab.analysis.image_evaluation import EnsembleScores, Scores


def command(runs: Positional[list[str]], *, best: int = 0, out: str = "", json: Json = False) -> None:
    """Average the probabilities of runs that read digits, and keep them as one that answers like a run.

    Example: attnlab ensemble runs/digits-default-s0 runs/digits-default-s1 runs/digits-cnn-s0 --best 2

    Args:
        runs: Run folders.
        best: Take so many of them, the best on validation images; 0 takes all.
        out: Folder to create; by default runs/ensemble, numbered if taken.
    """
    opened = list({run.path.resolve(): run for run in map(open_run, runs)}.values())
    if len(opened) < 2:
        raise InputError(f"an ensemble needs at least 2 different runs; given: {len(opened)}")
    from attnlab.analysis.image_classifier import image_classifier
    from attnlab.analysis.image_evaluation import measure_ensemble

    readers = [image_classifier(run) for run in opened]
    path = Path(out) if out else unused_path(Path("runs"), "ensemble")
    check_unused(path)
    with Meter("reading", 1) as meter:
        chosen, found = measure_ensemble(readers, best=best, progress=meter.update)
    created = create_ensemble(path, [opened[i] for i in chosen], found.to_json())
    if json:
        print_json({"ensemble": str(path), **found.to_json()})
    else:
        show(created.name, found)
        say(f"next: attnlab predict {quote(str(path))} picture.png")


def show(name: str, found: "EnsembleScores") -> None:
    rows = [
        (row.run, "yes" if row.chosen else "no", percent(row.valid.exact_match), *_tested(row.test))
        for row in found.members
    ]
    print_table(
        f"{name}: {found.test.examples:,} test images, wholly right",
        ("run", "taken", "validation", "test", "95% interval", "loss", "ECE"),
        [*rows, ("together", "", "", *_tested(found.test))],
    )
    differ, against = found.disagreement, found.against_the_best
    print(
        f"two of the runs differ on {percent(differ.pairs)} of the images, and some of them on "
        f"{percent(differ.any)}"
    )
    print(
        f"together they mend {against.mended:,} mistakes of the best run and make "
        f"{against.spoiled:,} that it does not make"
    )


def _tested(row: "Scores") -> tuple[str, ...]:
    interval = percent_ends(row.exact_match_interval)
    return percent(row.exact_match), interval, f"{row.loss:.4f}", percent(row.ece)
