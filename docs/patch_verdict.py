"""What the study of patch attention says: the original's numbers beside ours, and what the 38% came from.

**Agreement.** An original figure is one run, so it is held against the range in which one more run of ours
would fall with 95% chance: mean +- t(n - 1) s sqrt(1 + 1/n).

**Shares.** Three things change between the model that stayed at 38% and one that works: width, start of the
positions, learning rate. All eight combinations were run, so each thing's share of the gain is its Shapley
value (1953): the mean of what it adds, over all orders in which the three can be changed. It is computed
seed by seed; the three shares sum to the whole gain.
"""

from itertools import permutations
from math import sqrt
from statistics import fmean, stdev

from attnlab.analysis.statistics import SeedDifferences, SeedValues, compare_seeds, describe_seeds, percent
from attnlab.results import Interval, Table
from attnlab.studies.outcome import StudyResult
from attnlab.tables.study import show_difference

ORIGINAL: dict[str, tuple[float, ...]] = {
    "16/32, uniform 0.1, lr 0.01": (0.3773, 0.3855),
    "64/128, uniform 0.1, lr 0.01": (0.4442, 0.4489),
    "64/128, uniform 0.5, lr 0.01": (0.7186,),
    "64/128, sinusoidal, lr 0.01": (0.8345,),
    "64/128, sinusoidal, lr 0.01, 8 epochs": (0.9108, 0.8363, 0.9011, 0.9024, 0.8880),
    "64/128, zero, lr 0.01": (0.3565,),
    "64/128, xavier, lr 0.01": (0.4563,),
    "64/128, uniform 0.1, lr 0.001": (0.1898,),
    "64/128, uniform 0.1, lr 0.003": (0.2288,),
    "64/128, uniform 0.1, lr 0.005": (0.2815,),
}
"""Test accuracies that the original investigation reports, a number a run."""

CONTRASTS = {
    "capacity, as the original trained": ("64/128, uniform 0.1, lr 0.01", "16/32, uniform 0.1, lr 0.01"),
    "positions, as the original trained": ("64/128, sinusoidal, lr 0.01", "64/128, uniform 0.1, lr 0.01"),
    "positions, at ten times the rate": ("64/128, sinusoidal, lr 0.1", "64/128, uniform 0.1, lr 0.1"),
    "positions, at thirty times the rate": ("64/128, sinusoidal, lr 0.3", "64/128, uniform 0.1, lr 0.3"),
    "rate, with the original's positions": ("64/128, uniform 0.1, lr 0.1", "64/128, uniform 0.1, lr 0.01"),
    "rate, with sinusoidal positions": ("64/128, sinusoidal, lr 0.1", "64/128, sinusoidal, lr 0.01"),
    "rate, at the original's width": ("16/32, uniform 0.1, lr 0.1", "16/32, uniform 0.1, lr 0.01"),
    "capacity, at ten times the rate": ("64/128, uniform 0.1, lr 0.1", "16/32, uniform 0.1, lr 0.1"),
    "rows and columns instead of one number": (
        "64/128, sinusoidal-2d, lr 0.1",
        "64/128, sinusoidal, lr 0.1",
    ),
}
"""Questions, each with the variant that answers it and the one it is compared with."""

FACTORS = ("width 16 to 64", "positions uniform 0.1 to sinusoidal", "learning rate 0.01 to {rate}")


def values(result: StudyResult, variant: str) -> list[float | None]:
    """Test accuracy of each seed."""
    return result.variant(variant).measures["accuracy"].values


def side_by_side(result: StudyResult) -> Table:
    """Every row of the original investigation."""
    rows = []
    for variant, original in ORIGINAL.items():
        ours = describe_seeds(values(result, variant))
        low, high = one_more(ours.values)
        inside = [low <= each <= high for each in original]
        agrees = "yes" if all(inside) else "no" if not any(inside) else f"{sum(inside)} of {len(inside)}"
        rows.append(
            (
                variant,
                ", ".join(percent(each) for each in original),
                percent(ours.mean or 0.0),
                _interval(ours.interval),
                f"{percent(low)} to {percent(high)}",
                agrees,
            )
        )
    columns = ("variant", "original", "our mean", "its 95% interval", "one more run, 95%", "agrees")
    return Table("the original's rows", columns, tuple(rows))


def one_more(known: list[float | None]) -> tuple[float, float]:
    """Where one more run falls with 95% chance, if runs are spread normally."""
    from scipy.stats import t  # here: it takes half a second to import

    found = [value for value in known if value is not None]
    middle, count = fmean(found), len(found)
    reach = float(t.ppf(0.975, count - 1)) * stdev(found) * sqrt(1 + 1 / count)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def shares(result: StudyResult, rate: float) -> Table:
    """Where the gain from the 38% model to the best corner came from."""
    corners = {
        (width, start, lr): values(
            result,
            f"{'64/128' if width else '16/32'}, {'sinusoidal' if start else 'uniform 0.1'}, "
            f"lr {rate if lr else 0.01:g}",
        )
        for width in (0, 1)
        for start in (0, 1)
        for lr in (0, 1)
    }
    seeds = [
        {corner: value for corner, each in corners.items() if (value := each[place]) is not None}
        for place in range(len(result.seeds))
    ]
    whole = [seed for seed in seeds if len(seed) == len(corners)]
    rows = []
    for factor, name in enumerate(FACTORS):
        found = describe_seeds([shapley(seed, factor) for seed in whole])
        rows.append(_share_row(name.format(rate=f"{rate:g}"), found))
    total = describe_seeds([seed[1, 1, 1] - seed[0, 0, 0] for seed in whole])
    columns = ("what changes", "share of the gain", "95% interval", "n")
    return Table(f"shares of the gain, learning rate {rate:g}", columns, (*rows, _share_row("all", total)))


def shapley(corners: dict[tuple[int, int, int], float], factor: int) -> float:
    """What ``factor`` adds on average over all orders in which the three are changed."""
    added = []
    for order in permutations(range(3)):
        before = [0, 0, 0]
        for each in order[: order.index(factor)]:
            before[each] = 1
        after = [*before]
        after[factor] = 1
        added.append(corners[_corner(after)] - corners[_corner(before)])
    return fmean(added)


def contrasts(result: StudyResult, pairs: dict[str, tuple[str, str]]) -> Table:
    """Paired differences between variants, each with its question."""
    rows = []
    for question, (variant, other) in pairs.items():
        found = compare_seeds(values(result, variant), values(result, other))
        rows.append((question, f"{variant} - ({other})", *_share_row("", found)[1:]))
    return Table("differences", ("question", "variants", "difference", "95% interval", "n"), tuple(rows))


def _corner(flags: list[int]) -> tuple[int, int, int]:
    width, start, lr = flags
    return width, start, lr


def _share_row(name: str, found: SeedValues | SeedDifferences) -> tuple[str, ...]:
    interval = found.interval
    ends = "-" if interval is None else " to ".join(show_difference(end, "share") for end in interval)
    return name, show_difference(found.mean, "share"), ends, str(found.n)


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else " to ".join(percent(end) for end in interval)
