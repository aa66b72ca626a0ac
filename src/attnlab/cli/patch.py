"""``attnlab patch``: what carries a difference of two examples, by putting values of one into the other."""

from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.cli.drawing import show_and_draw
from attnlab.cli.output import print_table
from attnlab.cli.parsing import Json, Positional
from attnlab.display import meters, say
from attnlab.problems.addition.task import Digit
from attnlab.runs import open_run

if TYPE_CHECKING:
    from attnlab.analysis.patch.contrasts import CarrierSet, Contrast, Effect, PatchResult
    from attnlab.results import Interval

SHOWN = 0.05  # heads that restore less are not printed


def command(
    run: Positional[str],
    *,
    column: int | None = None,
    pairs: int = 64,
    reach: int = 1,
    digit: Digit = "same",
    out: str = "",
    json: Json = False,
) -> int:
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
    opened = open_run(run)
    from attnlab.analysis.patch.contrasts import patch_run

    asked = {"column": (column, None), "reach": (reach, 1), "digit": (digit, "same")}
    options = {name: value for name, (value, default) in asked.items() if value != default}
    with meters() as stages:
        found = patch_run(opened, pairs=pairs, stages=stages, **options)
    return show_and_draw(found, opened, json=json, show=show, out=out, write=write)


def show(found: "PatchResult") -> None:
    """Print what ``patch_run`` found; the residual stream only where there is one contrast."""
    for contrast in found.columns:
        show_heads(found, contrast)
        if len(found.columns) == 1:
            show_stream(contrast)
    columns, rows = carriers_table(found)
    if rows:
        print_table("smallest sets of heads, on pairs that were not used to find them", columns, rows)
    for each in found.carriers:
        print(sentence(found, each))


def show_heads(found: "PatchResult", contrast: "Contrast") -> None:
    """Print the heads that restore something by themselves."""
    from attnlab.analysis.patch.grids import HEADS

    put_in, taken_out = (
        next(grid for grid in grids if grid.quantity == HEADS)
        for grids in (contrast.denoising, contrast.noising)
    )
    rows = []
    for place, head in enumerate(put_in.rows):
        shares, back = put_in.share[place], taken_out.share[place]
        if max(abs(shares[0]), abs(back[0])) >= SHOWN:
            z = _share(shares[0], put_in.interval[place][0])
            rows.append((head, z, *map(_percent, shares[1:]), _percent(back[0])))
    shown = contrast.example.values()
    base, donor = (each if isinstance(each, str) else "+".join(map(str, each)) for each in shown)
    print_table(
        f"{found.run}, {found.words.title(contrast.name)}, {contrast.pairs} pairs such as {base} and "
        f"{donor}: share of the logit difference restored",
        ("head, all positions", *put_in.columns, "z taken out"),
        rows,
    )
    left = len(put_in.rows) - len(rows)
    print(f"{left} heads by themselves restore less than {_percent(SHOWN)} with z\n")
    if contrast.warning is not None:
        print(f"warning: {contrast.warning}\n")


def show_stream(contrast: "Contrast") -> None:
    """Print the residual stream by position."""
    from attnlab.analysis.patch.grids import STREAM

    for grid in contrast.denoising:
        if grid.quantity == STREAM:
            rows = zip(grid.rows, grid.share, strict=True)
            print_table(
                "the residual stream after each sublayer, by position",
                ("after", *grid.columns),
                [(name, *map(_percent, shares)) for name, shares in rows],
            )


def carriers_table(found: "PatchResult") -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Names of the columns, and a row for each set and contrast."""
    words = found.words
    rows: list[tuple[str, ...]] = [
        (
            tested.name + (f", for every {words.several}" if len(each.columns) > 1 else ""),
            str(len(each.heads or ())),
            str(tested.pairs),
            *_tested(tested.denoising),
            *_tested(tested.noising),
        )
        for each in found.carriers
        for tested in each.held_out
    ]
    first = words.what or words.several
    return (first, "heads", "pairs", "put in", "answers turned", "taken out", "answers turned"), rows


def _tested(effect: "Effect") -> tuple[str, str]:
    """Share restored and answers that became the other example's."""
    return _share(effect.share, effect.interval), _share(effect.flipped, effect.flipped_interval)


def sentence(found: "PatchResult", carriers: "CarrierSet") -> str:
    """Which heads, and how sure it is that fewer do not suffice."""
    named = {each.column: each.name for each in found.columns}
    title = found.words.title(", ".join(named[column] for column in carriers.columns))
    goal = _percent(carriers.goal)
    if carriers.heads is None:
        whole = _percent(min(carriers.of_all_heads))
        return (
            f"{title}: all heads together restore {whole}, less than {goal}; the rest comes with "
            f"{found.words.rest}"
        )
    heads, size = ", ".join(carriers.heads), len(carriers.heads)
    if not carriers.smallest:
        known = f"no set of up to {carriers.exhausted} restores {goal}, larger sets were not all tried"
    elif size == 1:
        known = "by itself"
    else:
        known = f"no set of {size - 1} restores {goal}"
    count = len(carriers.others)
    others = f"; {count} other {'sets' if count > 1 else 'set'} of {size} do{'' if count > 1 else 'es'} too"
    return f"{title}: {heads} ({known}{others if count else ''})"


def write(found: "PatchResult", folder: Path) -> None:
    """Draw every contrast's maps into ``folder``."""
    from attnlab.figures.patching import draw_grids, head_grids_data, positions_data, stream_data
    from attnlab.figures.style import write_figure

    made = {"stream": stream_data, "heads": head_grids_data, "positions": positions_data}
    for contrast in found.columns:
        for name, data_of in made.items():
            data = data_of(contrast, found.words)
            write_figure(folder, f"patch-{contrast.column}-{name}", data, draw_grids(data))
    say(f"wrote {3 * len(found.columns)} figures to {folder}: patch-COLUMN-stream, -heads, -positions")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%".replace("-0%", "0%")


def _share(share: float, interval: "Interval") -> str:
    low, high = (_percent(end) for end in interval)
    return f"{_percent(share)} ({low} to {high})"
