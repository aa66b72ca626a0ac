"""Lists with one pair of different neighbours exchanged, measured at one length after another.

What a list costs grows with its length n, as n or as n^2. A batch holds as many lists as a budget allows;
progress goes by cost, so that an estimate of the time left does not mislead.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.words import UNSORTED
from attnlab.progress import Progress

Found = TypeVar("Found")


@dataclass(frozen=True)
class Budget:
    """``cost`` of one list by its length, and the ``most`` that a batch may cost."""

    cost: Callable[[int], int]
    most: int

    def lists(self, length: int) -> int:
        """How many lists are drawn at a time: an even number, since half of them are sorted."""
        return max(2, self.most // self.cost(length) // 2 * 2)


@dataclass(frozen=True)
class Exchanges:
    """So many ``lists`` of each of the ``lengths``."""

    lengths: tuple[int, ...]
    lists: int
    seed: int = 0

    def measure(
        self, task: Sorting, look: Callable[[Tensor], Found], budget: Budget, progress: Progress
    ) -> Iterator[tuple[int, list[Found]]]:
        """Each length with what ``look`` finds in each batch (N, L) of its lists."""
        done, whole = 0, sum(map(budget.cost, self.lengths))
        for length in self.lengths:
            drawn = task.draws(2 * self.lists, length, "swap", seed=self.seed, most=budget.lists(length))
            yield length, [look(part.inputs[0][part.targets == UNSORTED]) for part in drawn]
            done += budget.cost(length)
            progress(done, whole)
