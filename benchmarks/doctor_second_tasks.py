"""Two of the dozen small tasks by themselves, since others of that file are called as examples are."""

from random import Random

from attnlab import task

DIGITS = "0123456789"


@task(symbols=DIGITS, answer="sequence")
def maximum(rng: Random, numbers: int = 5) -> tuple[str, str]:
    """The largest of some numbers of two digits."""
    rows = [f"{rng.randrange(100):02}" for _ in range(numbers)]
    return "".join(rows), max(rows)


@task(symbols=DIGITS, classes=["even", "odd"])
def ends(rng: Random, length: int = 12) -> tuple[str, str]:
    """The parity of the first and the last digit together."""
    row = "".join(rng.choice(DIGITS) for _ in range(rng.randint(2, length)))
    return row, ("even", "odd")[(int(row[0]) + int(row[-1])) % 2]
