"""``attnlab verify``: every pair of operands, decoded and counted."""

from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, RunName
from attnlab.front.loading import load
from attnlab.problems.addition.task import verifiable


def command(run: RunName, *, json: Json = False) -> None:
    """Decode every ordered pair of operands greedily and count: 1,000,000 for three digits.

    Example: attnlab verify zoo:adder
    """
    opened = load(run)
    verifiable(opened.task)  # a refusal needs no torch
    print_result(opened.verify(), json=json)
