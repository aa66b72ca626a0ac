"""``attnlab predict``: ask a run for answers."""

import sys

import tyro

from attnlab.analysis import percent, predict
from attnlab.cli.output import print_json
from attnlab.cli.parsing import parse
from attnlab.errors import InputError
from attnlab.runs import load_task_and_model, open_run
from attnlab.tasks import Addition


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="predict")


def command(
    run: tyro.conf.Positional[str], inputs: tyro.conf.Positional[list[str]], *, json: bool = False
) -> int:
    """Answer one or more inputs; - reads them from standard input, one a line.

    Example: attnlab predict zoo:adder 374+814 999+1

    Args:
        run: A run folder, or a shipped run such as zoo:adder.
        inputs: Inputs in the task's notation, such as 374+814, or - for standard input.
        json: Print JSON instead of text.
    """
    task, model = load_task_and_model(open_run(run))
    lines = _standard_input() if inputs == ["-"] else inputs
    answers = predict(task, model, _checked(task, lines))
    if json:
        print_json(answers)
        return 0
    for answer in answers:
        mark = "" if answer["correct"] else "   wrong"
        print(f"{answer['input']} = {answer['output']}   (p = {percent(answer['probability'])}){mark}")
    return 0


def _standard_input() -> list[str]:
    """Its lines; bytes that are no text become marks that no task can read."""
    return sys.stdin.buffer.read().decode("utf-8", errors="replace").splitlines()


def _checked(task: Addition, lines: list[str]) -> list[str]:
    """The lines, once every one of them is known to be readable."""
    if not lines:
        raise InputError("there is nothing to answer; give an input such as 374+814")
    for number, line in enumerate(lines, start=1):
        try:
            task.parse(line)
        except InputError as error:
            raise InputError(f"line {number}: {error}" if len(lines) > 1 else str(error)) from error
    return lines
