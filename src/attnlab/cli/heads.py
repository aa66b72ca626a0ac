"""``attnlab heads``: where every head looks, measured on many examples."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.cli.drawing import figure_name, show_and_draw, write_figures
from attnlab.cli.output import Meter, in_parts, print_table, say
from attnlab.cli.parsing import Json, RunName
from attnlab.runs import open_run
from attnlab.spec import Split

if TYPE_CHECKING:
    from attnlab.analysis.heads import HeadsResult, Metric

IN_NATS = "entropy_nats"  # in JSON only, since every other number goes from 0 to 1


def command(
    run: RunName,
    *,
    split: Split = "valid",
    examples: int = 2000,
    places: bool = False,
    out: str = "",
    json: Json = False,
) -> int:
    """Measure where every head looks on many examples, each number beside that of uniform attention.

    Entropy (1 = uniform), sparsity (0 = uniform), weight on the own and on the previous token; in sums also
    weight on the digits of a column, on the columns that decide about a carry, and on the operator.
    docs/heads.md tells what each number is.

    Example: attnlab heads zoo:adder --out figures

    Args:
        split: Which examples.
        examples: How many of them, at most.
        places: Print the decoder's weights also by the place of the answer.
        out: Folder for the map of heads and metrics (SVG, PNG, JSON); by default figures in the run folder,
            and none for a shipped run.
    """
    opened = open_run(run)
    from attnlab.analysis.heads import heads_run

    with Meter("measuring heads", examples) as meter:
        found = heads_run(opened, split=split, count=examples, progress=meter.update)
    name = "heads" if out else figure_name("heads", opened, f"heads-{split}", found, "examples")
    tables, draw = partial(show, places=places), partial(write, name=name)
    return show_and_draw(found, opened, json=json, show=tables, out=out, write=draw)


def show(found: "HeadsResult", *, places: bool) -> None:
    """Print what ``heads_run`` found: tables for each kind of attention, and who looks where most."""
    from attnlab.analysis.heads import strongest

    for kind, rows in found.kinds.items():
        names = [name for name in found.metrics if name != IN_NATS and name in rows[0].metrics]
        title = f"{found.run}, {kind}: {found.examples:,} {found.split} examples"
        for part in in_parts(names, len(rows[0].head)):
            print_table(
                f"{title}, ± half of the 95% interval",
                ("", *(name.replace("_", " ") for name in part)),
                [
                    ("uniform", *(_value(rows[0].metrics[name].uniform, "") for name in part)),
                    *((row.head, *(_cell(row.metrics[name]) for name in part)) for row in rows),
                ],
            )
    best = [
        (row.metric.replace("_", " "), row.head, f"{row.weight.value:.3f}", f"{row.weight.uniform:.3f}")
        for row in strongest(found)
    ]
    print_table("most weight", ("on", "head", "weight", "uniform"), best)
    say("where a head looks is not yet what it does")
    if places:
        show_places(found)


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


def write(found: "HeadsResult", folder: Path, *, name: str) -> None:
    from attnlab.figures.heads import draw_heads, heads_data

    write_figures(folder, found, {name: (heads_data, draw_heads)})


def _cell(cell: "Metric") -> str:
    if cell.interval is None:
        return _value(cell.value, "")
    low, high = cell.interval
    return _value(cell.value, f"±{(high - low) / 2:.3f}".replace("±0.", "±."))


def _value(value: float, half: str) -> str:
    return f"{value:.3f} {half:<5}"
