"""What measuring a model at other lengths than those of training needs, whatever the task.

A task that has lengths offers an analysis ``lengths``; ``attnlab lengths`` and ``Run.lengths`` ask for it.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from attnlab.errors import InputError, brief

_ON = "..."
Row = TypeVar("Row")


def read_lengths(text: str, check: Callable[[int], None], example: str) -> list[int]:
    """``8,12,16`` as numbers; ``16,32,...,256`` goes on as the two numbers before the dots do.

    If the second is a multiple of the first, lengths are multiplied, else the same is added again.
    ``check`` refuses a length that the task does not have; ``example`` is what an error suggests.
    """

    def number(word: str) -> int:
        if not (word.isascii() and word.isdigit() and len(word) < 10):
            raise InputError(f"lengths is {brief(text)}; write whole numbers such as {example}")
        check(int(word))
        return int(word)

    words = [word.strip() for word in text.split(",")]
    found: list[int] = []
    for place, word in enumerate(words):
        if word != _ON:
            found.append(number(word))
            continue
        if len(found) < 2 or place + 1 == len(words):
            raise InputError(f"lengths is {brief(text)}; dots need two numbers before and one behind them")
        found += _between(found[-2], found[-1], number(words[place + 1]))
    return sorted(set(found))


def _between(first: int, second: int, last: int) -> list[int]:
    """What comes after ``second`` and before ``last``."""
    if second <= first:
        raise InputError(f"lengths goes on after {first},{second}; before dots they must rise")
    grows = second % first == 0
    found, number = [], second
    while (number := number * (second // first) if grows else number + second - first) < last:
        found.append(number)
    return found


def merged(
    earlier: Sequence[Row], rows: Sequence[Row], cell: Callable[[Row], tuple[str, int]]
) -> list[Row]:
    """One row for each ``cell``, kind by kind and by length: of ``rows``, or else measured ``earlier``."""
    cells = {cell(row): row for row in (*earlier, *rows)}
    kinds = list(dict.fromkeys(kind for kind, _ in cells))
    return [cells[each] for each in sorted(cells, key=lambda each: (kinds.index(each[0]), each[1]))]
