"""``attnlab lengths``: how a run that tells sorted lists does at any length."""

from attnlab.cli.drawing import save_figures
from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, Positional, Seed
from attnlab.front.loading import load
from attnlab.problems.sorting.words import LENGTHS, LISTS, NEGATIVES


def command(
    run: Positional[str],
    *,
    lengths: str = LENGTHS,
    negatives: str = ",".join(NEGATIVES),
    examples: int = LISTS,
    seed: Seed = 0,
    out: str = "",
    json: Json = False,
) -> None:
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
    opened = load(run)
    found = opened.lengths(lengths=lengths, negatives=negatives, examples=examples, seed=seed)
    print_result(found, json=json)
    save_figures(found, opened, out)
