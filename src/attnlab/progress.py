"""How a long computation says how far it is."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Is told how many of how many are done."""


Stages = Callable[[str], Progress]
"""Gives the progress of a stage of the work by its name; a new stage ends the one before."""


def silent(done: int, total: int) -> None:
    """Progress that nobody watches."""
