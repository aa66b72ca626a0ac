"""``attnlab explain``: which parts of an input an answer is owed to, and which methods to believe."""

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from attnlab.cli.drawing import drawing_folder, figure_name
from attnlab.cli.output import Meter, print_json, say
from attnlab.cli.parsing import Seed, parse
from attnlab.cli.places import check_out, file_name
from attnlab.errors import InputError
from attnlab.runs import Run, open_run
from attnlab.spec import Split

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnlab.results import Result

_NAME = 60  # characters of an input that the name of a figure holds


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="explain")


def command(
    run: tyro.conf.Positional[str],
    text: tyro.conf.Positional[str] = "",
    *,
    many: int = 0,
    place: str = "",
    split: Split = "test",
    seed: Seed = 0,
    out: str = "",
    json: bool = False,
) -> int:
    """Say by six methods which patches or tokens an answer is owed to, and judge the methods.

    Example: attnlab explain zoo:adder 374+814 --place 10^1 --out why.svg

    Example: attnlab explain zoo:digit test:7

    Example: attnlab explain zoo:adder --many 200

    Args:
        run: A run folder, or a shipped run such as zoo:adder.
        text: An input as predict takes it: 374+814, the list "3 5 5 9 8", a picture, or the image test:7.
        many: Judge the methods on so many inputs of the split instead, with intervals.
        place: Only this digit of the answer: 10^1 of a sum, 0,1 of a grid; by default all of them, and
            with --many one of each input, drawn at random.
        split: Where many inputs come from.
        seed: Of all that is drawn: inputs, places, random orders, resampled parts.
        out: File for the figure, .svg or .png, with its numbers as JSON beside it; by default figures in
            the run folder, or here for a shipped run.
        json: Print JSON instead of tables.
    """
    if text and many:
        raise InputError(f"the input is {text!r} and --many is {many}; give one of the two")
    if not text and not many:
        raise InputError("explain takes one input such as 374+814 or test:7, or --many and a number")
    if text and split != "test":
        raise InputError(f"--split is {split}, but the input is named; a split is drawn from with --many")
    if out:
        check_out(out, ".svg", ".png")
    opened = open_run(run)
    from attnlab.analysis.explain.runs import explain_run, explain_split, kept_name
    from attnlab.cli.explain_tables import show_many, show_one
    from attnlab.figures.attribution import draw_explain, draw_explain_many, explain_data

    if many:
        with Meter("explaining", many) as meter:
            judged = explain_split(opened, many, place=place, split=split, seed=seed, progress=meter.update)
        print_json(judged) if json else show_many(judged)
        kept = kept_name(split, place)
        name = figure_name(file_name(kept), opened, kept, judged, "inputs")
        _write(opened, out, name, judged, draw_explain_many(judged))
    else:
        with Meter("explaining", 1) as meter:
            found = explain_run(opened, text, place=place, seed=seed, progress=meter.update)
        print_json(found) if json else show_one(found)
        words, data = [_short(Path(found.input).name), *filter(None, [place])], explain_data(found)
        _write(opened, out, file_name("explain", *words), data, draw_explain(data))
    return 0


def _write(run: Run, out: str, name: str, data: "Result", drawn: "Figure") -> None:
    """Into the file that is asked for, or by its name where figures of the run belong."""
    from attnlab.figures.style import write_figure, write_picture

    if out:
        paths = write_picture(Path(out), data, drawn)
    else:
        paths = write_figure(drawing_folder(run, ""), name, data, drawn)
    say(f"wrote {', '.join(map(str, paths))}")


def _short(name: str) -> str:
    """A long input by its beginning and eight digits of its SHA-256."""
    if len(name) <= _NAME:
        return name
    return f"{name[: _NAME - 9]}-{sha256(name.encode()).hexdigest()[:8]}"
