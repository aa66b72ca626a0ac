"""A dozen small tasks as a user writes them: six with an answer in symbols, six with classes.

attnlab train benchmarks/dozen_tasks.py:sort
"""

from collections import Counter
from random import Random

from attnlab import task

DIGITS, LETTERS = "0123456789", "abcdefghijklmnopqrstuvwxyz"


def draw(rng: Random, symbols: str, least: int, most: int) -> str:
    """A row of ``least`` to ``most`` symbols."""
    return "".join(rng.choice(symbols) for _ in range(rng.randint(least, most)))


@task(symbols=DIGITS, answer="sequence")
def reverse(rng: Random, length: int = 10) -> tuple[str, str]:
    """A row of digits from its end to its beginning."""
    row = draw(rng, DIGITS, length, length)
    return row, row[::-1]


@task(symbols=LETTERS, answer="sequence")
def rotate(rng: Random, length: int = 10) -> tuple[str, str]:
    """A row of letters, the first two of which move to its end."""
    row = draw(rng, LETTERS, 3, length)
    return row, row[2:] + row[:2]


@task(symbols=LETTERS, answer="sequence")
def copy(rng: Random, length: int = 12) -> tuple[str, str]:
    """A row of letters as it is."""
    row = draw(rng, LETTERS, 1, length)
    return row, row


@task(symbols=DIGITS, answer="sequence")
def sort(rng: Random, length: int = 8) -> tuple[str, list[str]]:
    """A row of digits in order."""
    row = draw(rng, DIGITS, length, length)
    return row, sorted(row)


@task(symbols="abc" + DIGITS, answer="sequence")
def count(rng: Random, length: int = 20) -> tuple[str, str]:
    """How often there is an a, as a decimal number."""
    row = draw(rng, "abc", 1, length)
    return row, str(row.count("a"))


@task(symbols=DIGITS, answer="sequence")
def maximum(rng: Random, numbers: int = 5) -> tuple[str, str]:
    """The largest of some numbers of two digits."""
    rows = [f"{rng.randrange(100):02}" for _ in range(numbers)]
    return "".join(rows), max(rows)


@task(symbols="()", classes=["no", "yes"])
def brackets(rng: Random, pairs: int = 8) -> tuple[str, str]:
    """Whether brackets match; two were exchanged in half of the rows."""
    row, depth, left = [], 0, rng.randint(1, pairs)
    while left or depth:
        opens = left and (not depth or rng.random() < 0.5)
        row.append("(" if opens else ")")
        depth, left = (depth + 1, left - 1) if opens else (depth - 1, left)
    if rng.random() < 0.5:
        a, b = rng.sample(range(len(row)), 2)
        row[a], row[b] = row[b], row[a]
    depths = [row[: end + 1].count("(") - row[: end + 1].count(")") for end in range(len(row))]
    return "".join(row), "yes" if min(depths) == 0 else "no"


@task(symbols="01", classes=["no", "yes"])
def majority(rng: Random, length: int = 21) -> tuple[str, str]:
    """Whether more than half of the symbols are 1."""
    row = draw(rng, "01", 1, length)
    return row, "yes" if 2 * row.count("1") > len(row) else "no"


@task(symbols=DIGITS, classes=["even", "odd"])
def ends(rng: Random, length: int = 12) -> tuple[str, str]:
    """The parity of the first and the last digit together."""
    row = draw(rng, DIGITS, 2, length)
    return row, ("even", "odd")[(int(row[0]) + int(row[-1])) % 2]


@task(symbols="abcdefgh", classes=[*"abcdefgh", "none"])
def repeated(rng: Random, length: int = 8) -> tuple[str, str]:
    """The first letter that has been there before."""
    row = draw(rng, "abcdefgh", 2, length)
    seen: Counter[str] = Counter()
    for each in row:
        seen[each] += 1
        if seen[each] == 2:
            return row, each
    return row, "none"


@task(symbols=DIGITS, classes=DIGITS)
def modular(rng: Random, length: int = 5) -> tuple[str, str]:
    """The last digit of the sum of some digits."""
    row = draw(rng, DIGITS, length, length)
    return row, str(sum(map(int, row)) % 10)


@task(symbols="abcdefgh" + DIGITS, classes=DIGITS)
def lookup(rng: Random, pairs: int = 6) -> tuple[str, str]:
    """The digit behind a letter, asked for by the last letter, as in b4a7c1a."""
    keys = rng.sample("abcdefgh", rng.randint(2, pairs))
    table = {key: rng.choice(DIGITS) for key in keys}
    asked = rng.choice(keys)
    return "".join(key + value for key, value in table.items()) + asked, table[asked]
