"""Examples by the bytes of their inputs, to see which are the same, and which are so by chance.

Examples that are drawn alike can be exchanged: a further one is the same as one of n with the chance that
one of n is the same as another of them (Good, "The population frequencies of species", 1953). So what
validation examples share with training examples, or have never seen there, is compared with what training
examples share with each other, or have alone.
"""

from collections import Counter

from attnlab.doctor.limits import ALARM
from attnlab.sets import Examples

LOOKED, LOOKED_MADE = 20_000, 1_000
"""Examples that are compared: those in memory, and those that are made when asked for."""


def rows_of(examples: Examples) -> list[bytes]:
    """The first input of each example as bytes."""
    most = LOOKED if examples.render is None else LOOKED_MADE
    first = examples[slice(0, most)].inputs[0].contiguous()
    return [row.numpy().tobytes() for row in first]


def repeated(rows: list[bytes]) -> int:
    """How many rows are there more than once."""
    counts = Counter(rows)
    return sum(counts[row] > 1 for row in rows)


def beyond_chance(count: int, asked: int, known: int, rows: int) -> bool:
    """Whether ``count`` of those ``asked`` are more than there are by chance, as ``known`` of the training
    examples show, which are ``rows`` (Fisher's exact test).
    """
    from scipy.stats import fisher_exact  # here: it takes half a second to import

    table = [[count, asked - count], [known, rows - known]]
    return bool(fisher_exact(table, alternative="greater").pvalue <= ALARM.value)
