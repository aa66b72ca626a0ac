"""``attnlab predict``: ask a run for answers."""

import sys
from collections.abc import Iterator
from itertools import chain

from attnlab.analysis import percent
from attnlab.analysis.choices import SURE, check_sure
from attnlab.cli.output import print_json_list, print_text
from attnlab.cli.parsing import Positional, RunName
from attnlab.errors import InputError, LabError, shortened
from attnlab.front.loading import load
from attnlab.specs import Task

SHOWN = 72  # characters of an input
MOST_LINE = 2**20
"""Bytes of a line of standard input; the longest list of the task sorting has 50,000."""


def command(
    run: RunName,
    inputs: Positional[list[str]],
    *,
    sure: float = SURE,
    picture: bool = False,
    json: bool = False,
) -> int:
    """Answer one or more inputs; - reads them from standard input, one a line, or one picture.

    Lines are answered as they come, a few hundred at a time; one that cannot be read ends the command.

    Example: attnlab predict zoo:adder 374+814 999+1

    Example: attnlab predict runs/sorting-default-s0 "3 5 5 9 8"

    Example: attnlab predict zoo:digit seven.png scans/

    Args:
        inputs: Inputs in the task's notation, such as 374+814 or the list "3 5 5 9 8"; for digits
            pictures, folders of pictures, or the image test:7; or - for standard input.
        sure: Of images: below this probability the answer is "not sure"; 0 always answers.
        picture: Of images: draw what was read of each picture, which a terminal shows of a few anyway; with
            --json its pixels.
        json: Print JSON instead of text.
    """
    check_sure(sure)
    opened = load(run)
    if opened.task.images:
        from attnlab.cli.predict_pictures import given_pictures, print_answers

        answers = opened.predict(given_pictures(inputs), refused="keep", sure=sure)
        return print_answers(answers, picture=picture, json=json)
    lines = opened.predict_lines(_standard_input() if inputs == ["-"] else inputs)
    try:
        first = next(lines, None)
    except InputError as error:
        raise InputError(f"{error}{_quoted(opened.task, inputs)}") from error
    if first is None:
        raise InputError("there is nothing to answer; give an input such as 374+814")
    lines = chain([first], lines)
    if json:
        print_json_list(lines)
        return 0
    for answer in lines:
        mark = "   wrong" if answer.correct is False else ""
        equation = f"{_short(answer.input)} = {answer.output}"
        print_text(f"{equation}   (p = {percent(answer.probability)}){mark}{answer.remark()}")
    return 0


def _quoted(task: Task, inputs: list[str]) -> str:
    """How to give all words as one input, if together they are one: a shell has taken them apart."""
    if len(inputs) < 2:
        return ""
    together = " ".join(inputs)
    try:
        task.parse(together)
    except LabError:
        return ""
    return f'; to give one input that has spaces, quote it: "{shortened(together, SHOWN)}"'


def _short(given: str) -> str:
    """Long inputs by their two ends."""
    return given if len(given) <= SHOWN else f"{given[: SHOWN // 2]} ... {given[-SHOWN // 2 :]}"


def _standard_input() -> Iterator[str]:
    """Its lines as they come; bytes that are no text become marks that no task can read."""
    while line := sys.stdin.buffer.readline(MOST_LINE + 1):
        if len(line) > MOST_LINE:
            raise InputError(
                f"a line of standard input has more than {MOST_LINE:,} bytes, the most it may have"
            )
        yield from line.decode("utf-8", errors="replace").splitlines()
