"""``attnlab lengths``: how a run does at lengths that it has not learned from."""

from attnlab.cli.drawing import save_figures
from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, Positional, Seed
from attnlab.front.loading import load


def command(
    run: Positional[str],
    *,
    lengths: str = "",
    negatives: str = "",
    sums: str = "",
    examples: int | None = None,
    seed: Seed = 0,
    out: str = "",
    json: Json = False,
) -> None:
    """Measure a run at many lengths: lists of up to 16,384 numbers, or sums of up to 200 digits.

    At each length half of the lists are sorted. A model that gives the same answer to at least 99% of them
    is called a constant predictor: its accuracy, however high, shows no skill. Sums are uniform, or such
    that every column sends a carry. The run keeps the results, and those of earlier calls for lengths that
    were not measured again.

    Example: attnlab lengths runs/sorting-default-s0 --lengths 8,16,...,4096 --negatives swap,reference

    Args:
        run: The folder of a run whose task has lengths.
        lengths: Lengths with commas between them; dots go on as the two numbers before them do; by default
            those of the task.
        negatives: How unsorted lists are made: swap, reference, shuffle, each measured separately, or a
            mixture such as swap=0.5,shuffle=0.5; by default swap,reference.
        sums: Which sums are added: uniform, full-carry, or both, which is the default.
        examples: Examples at each length; by default 1,000 lists or 500 sums.
        seed: Which lists; the same for every run.
        out: Folder for the curve (SVG, PNG, JSON); by default figures in the run folder, and none for a
            shipped run.
    """
    opened = load(run)
    asked = {"lengths": lengths, "negatives": negatives, "sums": sums, "examples": examples}
    given = {name: each for name, each in asked.items() if each not in ("", None)}
    found = opened.lengths(**given, seed=seed)
    print_result(found, json=json)
    save_figures(found, opened, out)
