"""``attnlab heads``: where every head looks, measured on many examples."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from attnlab.cli.drawing import figure_name, show_and_draw
from attnlab.cli.output import Meter, console, print_table, say
from attnlab.cli.parsing import parse
from attnlab.runs import open_run
from attnlab.spec import Split

if TYPE_CHECKING:
    from attnlab.analysis.heads import HeadsResult, Metric

IN_NATS = "entropy_nats"  # in JSON only, since every other number goes from 0 to 1
CELL = 14  # columns that a number with its interval takes in a table


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="heads")


def command(
    run: tyro.conf.Positional[str],
    *,
    split: Split = "valid",
    examples: int = 2000,
    places: bool = False,
    out: str = "",
    json: bool = False,
) -> int:
    """Measure where every head looks on many examples, each number beside that of uniform attention.

    Entropy (1 = uniform), sparsity (0 = uniform), weight on the own and on the previous token; in sums also
    weight on the digits of a column, on the columns that decide about a carry, and on the operator.
    docs/heads.md tells what each number is.

    Example: attnlab heads zoo:adder --out figures

    Args:
        run: A run folder, or a shipped run such as zoo:adder.
        split: Which examples.
        examples: How many of them, at most.
        places: Print the decoder's weights also by the place of the answer.
        out: Folder for the map of heads and metrics (SVG, PNG, JSON); by default figures in the run folder,
            and none for a shipped run.
        json: Print JSON instead of tables.
    """
    opened = open_run(run)
    from attnlab.analysis.heads import heads_run

    with Meter("measuring heads", examples) as meter:
        found = heads_run(opened, split=split, count=examples, progress=meter.update)
    tables = show_all if places else show
    name = "heads" if out else figure_name("heads", opened, f"heads-{split}", found, "examples")
    return show_and_draw(found, opened, json=json, show=tables, out=out, write=partial(write, name=name))


def show_all(found: "HeadsResult") -> None:
    """Print also the decoder's weights by the place of the answer."""
    show(found)
    show_places(found)


def show(found: "HeadsResult") -> None:
    """Print what ``heads_run`` found: tables for each kind of attention, and who looks where most."""
    from attnlab.analysis.heads import strongest

    for kind, rows in found.kinds.items():
        names = [name for name in found.metrics if name != IN_NATS and name in rows[0].metrics]
        title = f"{found.run}, {kind}: {found.examples:,} {found.split} examples"
        for part in _fitting(names, len(rows[0].head)):
            print_table(
                f"{title}, ± half of the 95% interval",
                ("", *(name.replace("_", " ") for name in part)),
                [
                    ("uniform", *(_value(rows[0].metrics[name].uniform, "") for name in part)),
                    *((row.head, *(_cell(row.metrics[name]) for name in part)) for row in rows),
                ],
            )
    print_table(
        "most weight",
        ("on", "head", "weight", "uniform"),
        [
            (
                best.metric.replace("_", " "),
                best.head,
                f"{best.weight.value:.3f}",
                f"{best.weight.uniform:.3f}",
            )
            for best in strongest(found)
        ],
    )
    say("where a head looks is not yet what it does")


def show_places(found: "HeadsResult") -> None:
    """Print the weights of decoder heads by the place of the answer."""
    from attnlab.analysis.heads import weights_of

    for name in weights_of(found):
        cells = [(row.head, row.metrics[name].by_place) for row in found.heads if name in row.metrics]
        known = [(head, weights) for head, weights in cells if weights]
        places = [place for place in found.places if any(place in weights for _, weights in known)]
        if known:
            print_table(
                f"{name.replace('_', ' ')}, by the place of the answer",
                ("", *places),
                [
                    (head, *(f"{weights[place]:.3f}" if place in weights else "" for place in places))
                    for head, weights in known
                ],
            )


def write(found: "HeadsResult", folder: Path, *, name: str = "heads") -> None:
    """Draw the map of heads and metrics into ``folder``."""
    from attnlab.figures.heads import draw_heads, heads_data
    from attnlab.figures.style import write_figure

    data = heads_data(found)
    paths = write_figure(folder, name, data, draw_heads(data))
    say(f"wrote {', '.join(map(str, paths))}")


def _fitting(names: list[str], label: int) -> list[list[str]]:
    """The names in parts, such that a table of each part fits into the terminal."""
    room = max(1, (console(sys.stdout).width - label - 2) // CELL)
    return [names[start : start + room] for start in range(0, len(names), room)]


def _cell(cell: "Metric") -> str:
    if cell.interval is None:
        return _value(cell.value, "")
    low, high = cell.interval
    return _value(cell.value, f"±{(high - low) / 2:.3f}".replace("±0.", "±."))


def _value(value: float, half: str) -> str:
    return f"{value:.3f} {half:<5}"
