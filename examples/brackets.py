"""Telling whether brackets match: tokens to a class, inputs of different lengths.

attnlab train examples/brackets.py --pairs 8
attnlab predict runs/brackets-default-s0 "(()())"
"""

from random import Random

from attnlab import task


@task(symbols="()", classes=["no", "yes"])
def brackets(rng: Random, pairs: int = 10) -> tuple[str, str]:
    """Whether every bracket that opens is closed, and none is closed before it opens."""
    row = balanced(rng, rng.randint(1, pairs))
    if rng.random() < 0.5:  # exchange two brackets: mostly wrong, and as many of each kind
        a, b = sorted(rng.sample(range(len(row)), 2))
        row = row[:a] + row[b] + row[a + 1 : b] + row[a] + row[b + 1 :]
    return row, "yes" if matches(row) else "no"


def balanced(rng: Random, pairs: int) -> str:
    """A row of matching brackets, built from the left."""
    row, open_, left = "", 0, pairs
    while left or open_:
        opens = left and (not open_ or rng.random() < 0.5)
        row, open_, left = (row + "(", open_ + 1, left - 1) if opens else (row + ")", open_ - 1, left)
    return row


def matches(row: str) -> bool:
    depth = 0
    for each in row:
        depth += 1 if each == "(" else -1
        if depth < 0:
            return False
    return depth == 0
