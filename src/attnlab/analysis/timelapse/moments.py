"""The moment of sudden learning: where accuracy rises most while the number of steps doubles.

With x = log2(1 + step), a the accuracy on validation examples at every measurement, and f(x) straight
between two measurements:

    f       = largest a so far            the best accuracy up to a measurement
    rise(x) = f(x + 1) - f(x)             within one doubling of steps
    whole   = last f - first f            how far the best accuracy came

What counts is the best so far, since only what was never reached before is learned: after a dip, the way
back is no learning, and no doubling can have more than the whole rise. (From the lowest accuracy before,
a run that falls from 90% to 10% and comes back would have learned suddenly.)

The window with the largest rise is the moment, and it is **sudden** if it holds at least ``SHARE`` of the
whole rise, the whole is at least ``LEAST``, and measurements span at least ``SPAN`` doublings. A straight
line over steps has half of its rise in the last doubling, 1 - exp(-step / t) has a quarter in its steepest,
a straight line over x has 1 / SPAN or less: none of them is sudden. Between two measurements a rise is
spread evenly over x, so what was not measured closely is never called sudden.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from attnlab.analysis.statistics import percent

SHARE = 0.6
LEAST = 0.1
SPAN = 4.0


@dataclass(frozen=True)
class Moment:
    """Steps ``start`` to ``end`` are the doubling with the largest rise, ``middle`` is where half of it is
    done; None where no doubling was measured. ``before`` and ``after`` are the best accuracy so far."""

    sudden: bool
    sentence: str
    whole: float
    start: int | None = None
    middle: int | None = None
    end: int | None = None
    before: float | None = None
    after: float | None = None
    share: float | None = None


def find_moment(steps: Sequence[int], accuracy: Sequence[float]) -> Moment:
    """The moment in a curve that was measured at rising ``steps``."""
    xs, best = [math.log2(1 + step) for step in steps], list(accumulate(accuracy, max))

    def at(x: float) -> float:
        return float(np.interp(x, xs, best))

    def rise(x: float) -> float:
        return at(x + 1) - at(x)

    whole = best[-1] - best[0]
    if len(steps) < 2 or xs[-1] - xs[0] < SPAN:
        return Moment(
            False,
            f"no sudden moment can be found: measurements from step {steps[0]} to {steps[-1]} "
            f"span less than {SPAN:.0f} doublings of steps",
            whole,
        )
    if whole < LEAST:
        return Moment(
            False,
            f"no sudden moment: the best accuracy on validation examples rose by {_points(whole)} in all, "
            f"and less than {_points(LEAST)} are not looked into",
            whole,
        )
    starts = sorted(x for knot in xs for x in (knot, knot - 1) if xs[0] <= x <= xs[-1] - 1)
    first = max(starts, key=lambda x: round(rise(x), 9))
    before, after, share = at(first), at(first + 1), rise(first) / whole
    start, end = _step(first), _step(first + 1)
    if share >= SHARE:
        sentence = (
            f"sudden learning between steps {start:,} and {end:,}: the best accuracy on validation "
            f"examples rose from {percent(before)} to {percent(after)}, {share:.0%} of the whole rise "
            "within one doubling"
        )
    else:
        sentence = (
            f"no sudden moment: the most that the best accuracy on validation examples rose within one "
            f"doubling of steps ({start:,} to {end:,}) is {_points(rise(first))}, {share:.0%} of the whole "
            f"rise; {SHARE:.0%} would be sudden"
        )
    half = before + rise(first) / 2
    places = [first, *(x for x in xs if x > first)]
    low, high = next(pair for pair in pairwise(places) if at(pair[1]) >= half)  # the first to get there
    middle = _step(low + (high - low) * (half - at(low)) / (at(high) - at(low)))
    return Moment(share >= SHARE, sentence, whole, start, middle, end, before, after, share)


def frames_around(steps: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Places of the snapshots around a moment: the last up to its start, the first from its end on."""
    before = max((place for place, step in enumerate(steps) if step <= start), default=0)
    after = min((place for place, step in enumerate(steps) if step >= end), default=len(steps) - 1)
    return before, after


def _step(x: float) -> int:
    return round(2**x - 1)


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"
