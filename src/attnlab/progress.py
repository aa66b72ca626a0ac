"""How a long computation says how far it is."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Is told how many of how many are done."""


def silent(done: int, total: int) -> None:
    """Progress that nobody watches."""
