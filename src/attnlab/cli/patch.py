"""``attnlab patch``: how the carry travels, by putting values of one sum into another."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from attnlab.cli.drawing import show_and_draw
from attnlab.cli.output import Meter, print_table, say
from attnlab.cli.parsing import parse
from attnlab.problems.addition.task import Digit
from attnlab.runs import open_run

if TYPE_CHECKING:
    from attnlab.progress import Progress

SHOWN = 0.05  # heads that restore less are not printed


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="patch")


def command(
    run: tyro.conf.Positional[str],
    *,
    column: int | None = None,
    pairs: int = 64,
    reach: int = 1,
    digit: Digit = "same",
    out: str = "",
    json: bool = False,
) -> int:
    """Find what carries the carry: put values of a sum into whose column a carry comes into a sum that
    differs only in that, at every layer, position and head, and see how much of the answer comes along.

    Example: attnlab patch zoo:adder --column 2 --out figures

    Args:
        run: A run folder of an adder, or a shipped run such as zoo:adder.
        column: The column at which the carry arrives, 1 for the tens; by default each in turn.
        pairs: Pairs of sums to find with; as many others test what was found.
        reach: How many columns below the deciding one lies; those between sum to nine.
        digit: Whether the deciding column leaves the same digit in both sums, or any.
        out: Folder for the figures; by default figures in the run folder, none for a shipped run.
        json: Print JSON instead of tables.
    """
    opened = open_run(run)
    from attnlab.problems.addition.carries import patch_run

    found = patch_run(opened, column=column, pairs=pairs, reach=reach, digit=digit, watch=_meter)
    return show_and_draw(found, opened, json=json, show=show, out=out, write=write)


@contextmanager
def _meter(name: str) -> Iterator["Progress"]:
    with Meter(name, 1) as meter:
        yield meter.update


def show(found: dict[str, Any]) -> None:
    """Print what ``patch_run`` found; the residual stream only where one column was asked for."""
    for column in found["columns"]:
        show_heads(found["run"], column)
        if len(found["columns"]) == 1:
            show_stream(column)
    show_carriers(found["carriers"])


def show_heads(run: str, column: dict[str, Any]) -> None:
    """Print the heads that restore something by themselves."""
    from attnlab.analysis.patch.grids import HEADS

    put_in, taken_out = (
        next(grid for grid in column[direction] if grid["quantity"] == HEADS)
        for direction in ("denoising", "noising")
    )
    rows = []
    for place, head in enumerate(put_in["rows"]):
        shares, back = put_in["share"][place], taken_out["share"][place]
        if max(abs(shares[0]), abs(back[0])) >= SHOWN:
            rows.append(
                (
                    head,
                    _share(shares[0], put_in["interval"][place][0]),
                    *map(_percent, shares[1:]),
                    _percent(back[0]),
                )
            )
    plain, carried = (_sum(column["example"][side]) for side in ("plain", "carried"))
    print_table(
        f"{run}, carry into {column['name']}, {column['pairs']} pairs such as {plain} and {carried}: "
        "share of the logit difference restored",
        ("head, all positions", *put_in["columns"], "z taken out"),
        rows,
    )
    left = len(put_in["rows"]) - len(rows)
    print(f"{left} heads by themselves restore less than {_percent(SHOWN)} with z\n")


def show_stream(column: dict[str, Any]) -> None:
    """Print the residual stream by position."""
    from attnlab.analysis.patch.grids import STREAM

    for grid in column["denoising"]:
        if grid["quantity"] == STREAM:
            rows = zip(grid["rows"], grid["share"], strict=True)
            print_table(
                "the residual stream after each sublayer, by position",
                ("after", *grid["columns"]),
                [(name, *map(_percent, shares)) for name, shares in rows],
            )


def show_carriers(carriers: list[dict[str, Any]]) -> None:
    """Print every set of heads and how it does on pairs that were not used to find it."""
    columns, rows = carriers_table(carriers)
    if rows:
        print_table("smallest sets of heads, on pairs that were not used to find them", columns, rows)
    for each in carriers:
        print(sentence(each))


def carriers_table(carriers: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Names of the columns, and a row for each set and column of sums."""
    rows: list[tuple[str, ...]] = [
        (
            tested["name"] + (", for every column" if len(each["columns"]) > 1 else ""),
            str(len(each["heads"])),
            str(tested["pairs"]),
            *_tested(tested["denoising"]),
            *_tested(tested["noising"]),
        )
        for each in carriers
        for tested in each["held_out"]
    ]
    return ("carry into", "heads", "pairs", "put in", "answers turned", "taken out", "answers turned"), rows


def _tested(found: dict[str, Any]) -> tuple[str, str]:
    """Share restored and answers that became the other sum's."""
    return _share(found["share"], found["interval"]), _share(found["flipped"], found["flipped_interval"])


def sentence(found: dict[str, Any]) -> str:
    """Which heads, and how sure it is that fewer do not suffice."""
    names = ", ".join(f"10^{column}" for column in found["columns"])
    goal = _percent(found["goal"])
    if found["heads"] is None:
        whole = _percent(min(found["of_all_heads"]))
        return (
            f"carry into {names}: all heads together restore {whole}, less than {goal}; the rest comes "
            "with the digits that were said before"
        )
    heads, size = ", ".join(found["heads"]), len(found["heads"])
    if not found["smallest"]:
        known = f"no set of up to {found['exhausted']} restores {goal}, larger sets were not all tried"
    elif size == 1:
        known = "by itself"
    else:
        known = f"no set of {size - 1} restores {goal}"
    count = len(found["others"])
    others = f"; {count} other {'sets' if count > 1 else 'set'} of {size} do{'' if count > 1 else 'es'} too"
    return f"carry into {names}: {heads} ({known}{others if count else ''})"


def write(found: dict[str, Any], folder: Path) -> None:
    """Draw every column's maps into ``folder``."""
    from attnlab.figures.patching import draw_grids, head_grids_data, positions_data, stream_data
    from attnlab.figures.style import write_figure

    for column in found["columns"]:
        drawings = {
            "stream": stream_data(column),
            "heads": head_grids_data(column),
            "positions": positions_data(column),
        }
        for name, data in drawings.items():
            write_figure(folder, f"patch-{column['column']}-{name}", data, draw_grids(data))
    say(f"wrote {3 * len(found['columns'])} figures to {folder}: patch-COLUMN-stream, -heads, -positions")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%".replace("-0%", "0%")


def _share(share: float, interval: list[float]) -> str:
    low, high = (_percent(end) for end in interval)
    return f"{_percent(share)} ({low} to {high})"


def _sum(pair: list[int]) -> str:
    return "+".join(map(str, pair))
