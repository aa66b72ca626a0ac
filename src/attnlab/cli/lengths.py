"""``attnlab lengths``: how a run that tells sorted lists does at any length."""

from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.analysis.statistics import percent, percent_ends
from attnlab.cli.drawing import show_and_draw, write_figures
from attnlab.cli.output import print_table
from attnlab.cli.parsing import Json, Positional, Seed
from attnlab.display import Meter
from attnlab.problems.sorting.words import LENGTHS, LISTS, NEGATIVES
from attnlab.runs import open_run

if TYPE_CHECKING:
    from attnlab.problems.sorting.lengths import LengthRow, Lengths, Trained


def command(
    run: Positional[str],
    *,
    lengths: str = LENGTHS,
    negatives: str = ",".join(NEGATIVES),
    examples: int = LISTS,
    seed: Seed = 0,
    out: str = "",
    json: Json = False,
) -> int:
    """Measure a run that tells sorted lists at many lengths, up to 16,384.

    At each length half of the lists are sorted. A model that gives the same answer to at least 99% of them
    is called a constant predictor: whatever its accuracy is, it is no skill. The run keeps what was found,
    and of earlier calls all lengths and ways that were not measured again.

    Example: attnlab lengths runs/sorting-default-s0 --lengths 8,16,...,4096 --negatives swap,reference

    Args:
        run: The folder of a run that does the task sorting.
        lengths: Lengths with commas between them; dots go on as the two numbers before them do.
        negatives: How lists are put out of order: swap, reference, shuffle, each for itself, or a
            mixture such as swap=0.5,shuffle=0.5.
        examples: Lists at each length.
        seed: Which lists; the same for every run.
        out: Folder for the curve (SVG, PNG, JSON); by default figures in the run folder, and none for a
            shipped run.
    """
    opened = open_run(run)
    analyses = opened.spec().task.analyses()
    if "lengths" not in analyses:
        from attnlab.runs.weights import other_task

        raise other_task(opened, "sorting")
    ways = (negatives,) if "=" in negatives else tuple(dict.fromkeys(negatives.split(",")))
    with Meter("measuring lengths", 1) as meter:
        found: Lengths = analyses["lengths"](  # type: ignore[assignment]
            opened, lengths=lengths, negatives=ways, examples=examples, seed=seed, progress=meter.update
        )
    return show_and_draw(found, opened, json=json, show=show, out=out, write=write)


def show(found: "Lengths") -> None:
    trained = found.trained
    for way in dict.fromkeys(row.negatives for row in found.rows):
        print_table(
            f"{found.run}, trained on {trained.low} to {trained.high} ({trained.negatives}); "
            f"unsorted lists by {way}",
            ("length", "lists", "accuracy", "95% interval", "balanced", "says sorted", "says unsorted", ""),
            [_cells(row, trained) for row in found.rows if row.negatives == way],
        )
    for sentence in found.constant:
        print(sentence)


def write(found: "Lengths", folder: Path) -> None:
    from attnlab.problems.sorting.sections import draw_lengths, lengths_data

    write_figures(folder, found, {"lengths": (lengths_data, draw_lengths)})


def _cells(row: "LengthRow", trained: "Trained") -> tuple[str, ...]:
    seen = trained.low <= row.length <= trained.high
    return (
        f"{row.length:,}",
        f"{row.examples:,}",
        percent(row.accuracy),
        percent_ends(row.accuracy_interval),
        percent(row.balanced_accuracy),
        percent(row.answers["sorted"]),
        percent(row.answers["unsorted"]),
        f"constant: {row.constant}" if row.constant else "trained" if seen else "",
    )
