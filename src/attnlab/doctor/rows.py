"""Examples by the bytes of their inputs, to see which are the same."""

from attnlab.sets import Examples

LOOKED, LOOKED_MADE = 20_000, 1_000
"""Examples that are compared: those in memory, and those that are made when asked for."""


def rows_of(examples: Examples) -> list[bytes]:
    """The first input of each example as bytes."""
    most = LOOKED if examples.made is None else LOOKED_MADE
    first = examples[slice(0, most)].inputs[0].contiguous()
    return [row.numpy().tobytes() for row in first]
