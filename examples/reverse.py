"""Reversing a row of digits: tokens to a sequence.

attnlab train examples/reverse.py
attnlab predict runs/reverse-default-s0 314159
"""

from random import Random

from attnlab import task


@task(symbols="0123456789", answer="sequence")
def reverse(rng: Random, length: int = 6) -> tuple[list[str], list[str]]:
    """Saying a row of digits from its end to its beginning."""
    row = [rng.choice("0123456789") for _ in range(length)]
    return row, row[::-1]
