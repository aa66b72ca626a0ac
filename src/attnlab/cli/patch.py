"""``attnlab patch``: what carries a difference of two examples, by putting values of one into the other."""

from attnlab.cli.drawing import save_figures
from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, Positional
from attnlab.front.loading import load
from attnlab.problems.addition.task import Digit


def command(
    run: Positional[str],
    *,
    column: int | None = None,
    pairs: int = 64,
    reach: int = 1,
    digit: Digit = "same",
    out: str = "",
    json: Json = False,
) -> None:
    """Find what carries a difference: put values of one example into another that differs in one thing, at
    every layer, position and head, and see how much of the answer comes along. For sums it is a carry.

    Example: attnlab patch zoo:adder --column 2 --out figures

    Args:
        run: A run folder, or a shipped run such as zoo:adder; its task must have contrasts.
        column: Of sums: the column at which the carry arrives, 1 for the tens; by default each in turn.
        pairs: Pairs of examples to find with; as many others test what was found.
        reach: Of sums: how many columns below the deciding one lies; those between sum to nine.
        digit: Of sums: whether the deciding column leaves the same digit in both, or any.
        out: Folder for the figures; by default figures in the run folder, none for a shipped run.
    """
    opened = load(run)
    asked = {"column": (column, None), "reach": (reach, 1), "digit": (digit, "same")}
    options = {name: value for name, (value, default) in asked.items() if value != default}
    found = opened.patch(pairs=pairs, **options)
    print_result(found, json=json)
    save_figures(found, opened, out)
