"""``attnlab positions``: what a run's positions, or any kind of them, look like."""

from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.cli.drawing import drawing_folder, file_name, say_written
from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import Json, Positional
from attnlab.errors import InputError, nearest
from attnlab.runs import open_run
from attnlab.specs import GridPositionSpec, PositionSpec, read_variant, require, variants, write_variant
from attnlab.specs.positions import require_positions

if TYPE_CHECKING:
    from attnlab.analysis.positions import StackPlaces, StackResult

LONGEST = 1024
KINDS = {**variants(PositionSpec), **variants(GridPositionSpec)}
GRIDS = variants(GridPositionSpec)


def command(
    what: Positional[str],
    *,
    length: int = 0,
    trained: int = 16,
    width: int = 64,
    heads: int = 4,
    columns: int = 7,
    out: str = "",
    json: Json = False,
) -> None:
    """Draw positions: vectors by place, how alike places are, and how far trained vectors moved.

    Known places are those that training reached; all others are marked. docs/positions.md tells what each
    kind does there.

    Example: attnlab positions zoo:adder

    Example: attnlab positions rotary:base=100 --length 64 --trained 16

    Args:
        what: A run folder, a shipped run such as zoo:adder, or a kind of positions such as sinusoidal or
            relative:buckets=8.
        length: Tokens to draw; by default twice as many as in training, for a grid 49.
        trained: Of a kind: tokens of the longest sequence that training would have.
        width: Of a kind: D, the width of the model.
        heads: Of a kind: H, the heads of an attention.
        columns: Of a grid: patches side by side.
        out: Folder for the figures (SVG, PNG, JSON); by default figures in the run folder, or here for a
            kind or a shipped run.
    """
    kind = what.partition(":")[0]
    if kind in KINDS and not Path(what).is_dir():
        only = kind_places(what, trained=trained, width=width, heads=heads, columns=columns)
        stacks, folder = {file_name(what): only}, Path(out or "figures")
    elif what.startswith("zoo:") or Path(what).exists() or "/" in what:
        run = open_run(what)
        from attnlab.analysis.positions import run_places

        stacks = {stack.name: stack for stack in run_places(run)}
        folder = drawing_folder(run, out)
    else:
        raise InputError(f"{what!r} is neither a run folder nor a kind of positions{nearest(kind, KINDS)}")
    from attnlab.analysis.positions import describe_stack
    from attnlab.figures.positions import draw_positions
    from attnlab.figures.style import write_figure

    found, files = [], list[Path]()
    for name, stack in stacks.items():
        default = stack.trained if stack.name in ("grid", "patches") else 2 * stack.trained
        tokens = length or min(default, LONGEST)
        require(1 <= tokens <= LONGEST, "--length", tokens, f"from 1 to {LONGEST}")
        data = describe_stack(stack, tokens)
        if not data.slots:
            raise InputError(f"{what!r} has nothing to draw: its positions are {stack.word!r}")
        found.append(data)
        files += write_figure(folder, f"positions-{name}", data, draw_positions(data))
    if json:
        print_json({"what": what, "stacks": found, "files": [*map(str, files)]})
    else:
        show(what, found)
        say_written(files)


def kind_places(word: str, *, trained: int, width: int, heads: int, columns: int) -> "StackPlaces":
    """Fresh positions of a kind."""
    for flag, value in (("trained", trained), ("width", width), ("heads", heads), ("columns", columns)):
        require(value >= 1, f"--{flag}", value, "at least 1")
    require(width % heads == 0, "--heads", heads, f"a divisor of --width {width}")
    from attnlab.analysis.positions import StackPlaces
    from attnlab.positions import build_positions

    grid, each = word.partition(":")[0] in GRIDS, width // heads
    if grid:
        require(width % 4 == 0, "--width", width, "a multiple of 4 for a grid")
    spec = read_variant(GridPositionSpec, word) if grid else read_variant(PositionSpec, word)
    require_positions(spec, width=width, heads=heads)
    shape = {"rows": columns, "columns": columns} if grid else {}
    positions = build_positions(spec, width=width, head_width=each, **shape)
    name, known = ("grid", columns * columns) if grid else ("any model", trained)
    return StackPlaces(name, write_variant(spec), positions, each, known)


def show(what: str, found: "list[StackResult]") -> None:
    rows = [
        (data.stack, slot.slot, str(data.tokens), str(sum(slot.known)), _number(slot.neighbours_alike))
        for data in found
        for slot in data.slots
    ]
    columns = ("stack", "slot", "tokens", "known places", "next place alike")
    print_table(f"{what}: {found[0].positions}", columns, rows)
    sides = [(side, known) for known in ("known", "unknown") for side in ("distance", "sideways")]
    moved = [
        (f"{data.stack}, {table.table}", *(_number(table.mean[side][known]) for side, known in sides))
        for data in found
        for table in data.moved
    ]
    if moved:
        columns = ("table", "known rows", "sideways", "unknown rows", "sideways")
        print_table("moved in training, mean over rows", columns, moved)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
