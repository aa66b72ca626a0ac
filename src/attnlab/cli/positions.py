"""``attnlab positions``: what a run's positions, or any kind of them, look like."""

from pathlib import Path

from attnlab.analysis.position_kinds import KINDS
from attnlab.cli.drawing import drawing_folder, file_name, say_written
from attnlab.cli.output import print_json, print_parts
from attnlab.cli.parsing import Json, Positional
from attnlab.errors import InputError, brief, nearest
from attnlab.front.loading import load
from attnlab.front.position_kinds import kind_positions


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

    Known places are those that training reached; all others are marked. docs/explanation/positions.md says
    what each kind does there.

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
        found = kind_positions(
            what, length=length, trained=trained, width=width, heads=heads, columns=columns
        )
        folder, name = Path(out or "figures"), f"positions-{file_name(what)}"
    elif what.startswith("zoo:") or Path(what).exists() or "/" in what:
        run = load(what)
        found, folder, name = run.positions(length=length), drawing_folder(run, out), ""
    else:
        raise InputError(
            f"{brief(what)} is neither a run folder nor a kind of positions{nearest(kind, KINDS)}"
        )
    files = found.save_figures(folder, name=name)
    if json:
        print_json({**found.to_json(), "files": [*map(str, files)]})
    else:
        print_parts(found.tables())
        say_written(files)
