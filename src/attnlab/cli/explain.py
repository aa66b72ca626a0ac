"""``attnlab explain``: which parts of an input an answer is owed to, and which methods to believe."""

from hashlib import sha256
from pathlib import Path

from attnlab.cli.drawing import check_out, figure_name, file_name, say_written, write_out
from attnlab.cli.output import tell
from attnlab.cli.parsing import Json, Positional, RunName, Seed
from attnlab.display import Meter
from attnlab.errors import InputError
from attnlab.runs import open_run
from attnlab.specs import Split

_NAME = 60  # characters of an input that the name of a figure holds


def command(
    run: RunName,
    text: Positional[str] = "",
    *,
    many: int = 0,
    place: str = "",
    split: Split = "test",
    seed: Seed = 0,
    out: str = "",
    json: Json = False,
) -> None:
    """Say by six methods which patches or tokens an answer is owed to, and judge the methods.

    Example: attnlab explain zoo:adder 374+814 --place 10^1 --out why.svg

    Example: attnlab explain zoo:digit test:7

    Example: attnlab explain zoo:adder --many 200

    Args:
        text: An input as predict takes it: 374+814, the list "3 5 5 9 8", a picture, or the image test:7.
        many: Judge the methods on so many inputs of the split instead, with intervals.
        place: Only this digit of the answer: 10^1 of a sum, 0,1 of a grid; by default all of them, and
            with --many one of each input, drawn at random.
        split: Where many inputs come from.
        seed: Of all that is drawn: inputs, places, random orders, resampled parts.
        out: File for the figure, .svg or .png, with its numbers as JSON beside it; by default figures in
            the run folder, or here for a shipped run.
    """
    if text and many:
        raise InputError(f"the input is {text!r} and --many is {many}; give one of the two")
    if not text and not many:
        raise InputError("explain takes one input such as 374+814 or test:7, or --many and a number")
    if text and split != "test":
        raise InputError(f"--split is {split}, but the input is named; a split is drawn from with --many")
    check_out(out, ".svg", ".png")
    opened = open_run(run)
    from attnlab.analysis.explain.runs import explain_run, explain_split, kept_name
    from attnlab.cli.explain_tables import show_many, show_one
    from attnlab.figures.attribution import draw_explain, draw_explain_many, explain_data

    if many:
        with Meter("explaining", many) as meter:
            judged = explain_split(opened, many, place=place, split=split, seed=seed, progress=meter.update)
        tell(judged, show_many, json=json)
        kept = kept_name(split, place)
        name = figure_name(file_name(kept), opened, kept, judged, "inputs")
        say_written(write_out(opened, out, name, judged, draw_explain_many))
    else:
        with Meter("explaining", 1) as meter:
            found = explain_run(opened, text, place=place, seed=seed, progress=meter.update)
        tell(found, show_one, json=json)
        name = file_name("explain", _short(Path(found.input).name), *filter(None, [place]))
        say_written(write_out(opened, out, name, explain_data(found), draw_explain))


def _short(name: str) -> str:
    """A long input by its beginning and eight digits of its SHA-256."""
    if len(name) <= _NAME:
        return name
    return f"{name[: _NAME - 9]}-{sha256(name.encode()).hexdigest()[:8]}"
