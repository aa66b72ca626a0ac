"""``attnlab explain``: which parts of an input an answer is attributed to, and which methods to believe."""

from hashlib import sha256
from pathlib import Path

from attnlab.cli.drawing import figure_name, file_name, say_written, write_main
from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, Positional, RunName, Seed
from attnlab.front.loading import load
from attnlab.specs import Split
from attnlab.storage import check_out

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
    """Say by six methods which patches or tokens an answer is attributed to, and judge the methods.

    Example: attnlab explain zoo:adder 374+814 --place 10^1 --out why.svg

    Example: attnlab explain zoo:digit test:7

    Example: attnlab explain zoo:adder --many 200

    Args:
        text: An input as predict takes it: 374+814, the list "3 5 5 9 8", a picture, or the image test:7.
        many: Judge the methods on this number of inputs of the split instead, with intervals.
        place: Only this digit of the answer: 10^1 of a sum, 0,1 of a grid; by default all of them, and
            with --many one of each input, drawn at random.
        split: Where many inputs come from.
        seed: Of all that is drawn: inputs, places, random orders, resampled parts.
        out: File for the figure, .svg or .png, with its numbers as JSON next to it; by default figures in
            the run folder, or here for a shipped run.
    """
    check_out(out, ".svg", ".png")
    opened = load(run)
    if many:
        judged = opened.explain(text, many=many, place=place, split=split, seed=seed)
        from attnlab.analysis.explain.runs import kept_name

        print_result(judged, json=json)
        kept = kept_name(split, place)
        name = figure_name(file_name(kept), opened, kept, judged, "inputs")
        say_written(write_main(judged, opened, out, name=name))
    else:
        found = opened.explain(text, place=place, split=split, seed=seed)
        print_result(found, json=json)
        name = file_name("explain", _short(Path(found.input).name), *filter(None, [place]))
        say_written(write_main(found, opened, out, name=name))


def _short(name: str) -> str:
    """A long input by its beginning and eight digits of its SHA-256."""
    if len(name) <= _NAME:
        return name
    return f"{name[: _NAME - 9]}-{sha256(name.encode()).hexdigest()[:8]}"
