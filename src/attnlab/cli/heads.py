"""``attnlab heads``: where every head looks, measured on many examples."""

from attnlab.cli.drawing import figure_name, save_figures
from attnlab.cli.output import print_parts, print_result
from attnlab.cli.parsing import Json, RunName
from attnlab.display import say
from attnlab.front.loading import load
from attnlab.specs import Split


def command(
    run: RunName,
    *,
    split: Split = "valid",
    examples: int = 2000,
    places: bool = False,
    out: str = "",
    json: Json = False,
) -> None:
    """Measure where every head looks on many examples, each number next to that of uniform attention.

    Entropy (1 = uniform), sparsity (0 = uniform), weight on the own and on the previous token; in sums also
    weight on the digits of a column, on the columns that decide about a carry, and on the operator.
    docs/explanation/heads.md defines each number.

    Example: attnlab heads zoo:adder --out figures

    Args:
        split: Which examples.
        examples: How many of them, at most.
        places: Print the decoder's weights also by the place of the answer.
        out: Folder for the map of heads and metrics (SVG, PNG, JSON); by default figures in the run folder,
            and none for a shipped run.
    """
    opened = load(run)
    found = opened.heads(split=split, examples=examples)
    name = "heads" if out else figure_name("heads", opened, f"heads-{split}", found, "examples")
    print_result(found, json=json)
    if not json:
        say("where a head looks is not yet what it does")
        if places:
            from attnlab.tables.heads import by_place

            print_parts(by_place(found))
    save_figures(found, opened, out, name=name)
