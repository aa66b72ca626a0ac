import json
import random
from itertools import product
from math import inf, nan
from pathlib import Path
from statistics import NormalDist, fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.analysis.statistics import (
    SeedDifferences,
    SeedValues,
    bootstrap_interval,
    compare_seeds,
    describe_seeds,
    holm,
    sign_flip_p,
)
from attnlab.studies.outcome import read_results

VALUES = [0.91, 0.99, 0.97, 1.0, 0.95, 0.83, 0.998]
NUMBERS = st.floats(-1e6, 1e6)


def test_an_interval_holds_the_mean_and_stays_within_the_values() -> None:
    interval = bootstrap_interval(VALUES)
    assert interval is not None
    assert 0.83 < interval[0] < sum(VALUES) / 7 < interval[1] < 1.0
    assert interval == bootstrap_interval(VALUES)
    assert interval == bootstrap_interval(VALUES[::-1])


def test_two_values_are_their_own_interval() -> None:
    """Their resamples' means are low, middle and high; 2.5% and 97.5% lie at the ends."""
    assert bootstrap_interval([3.0, 2.0]) == (2.0, 3.0)


def exact_bca(values: list[float]) -> tuple[float, float]:
    """The formulas of the docstring over all n^n resamples."""
    normal, count, middle = NormalDist(), len(values), fmean(values)
    means = sorted(fmean(sample) for sample in product(values, repeat=count))
    below = sum((each < middle - 1e-12) + (each <= middle + 1e-12) for each in means) / 2
    bias = normal.inv_cdf(below / len(means))
    left = [fmean(values) - (sum(values) - value) / (count - 1) for value in values]
    acceleration = sum(d**3 for d in left) / (6 * sum(d**2 for d in left) ** 1.5)
    shifted = [bias + normal.inv_cdf(share) for share in (0.025, 0.975)]
    places = [normal.cdf(bias + z / (1 - acceleration * z)) for z in shifted]
    return (means[int(places[0] * len(means))], means[int(places[1] * len(means))])


@pytest.mark.parametrize("values", [[0.91, 0.99, 0.97, 0.95, 0.83], [1.0, 2.0, 4.0, 8.0, 16.0]])
def test_the_interval_is_the_formula_over_all_resamples(values: list[float]) -> None:
    tolerance = 0.02 * (max(values) - min(values))
    assert bootstrap_interval(values) == pytest.approx(exact_bca(values), abs=tolerance)


@pytest.mark.parametrize("values", [[], [0.5], [0.5, nan], [inf, 0.5, 0.7]])
def test_too_few_values_have_no_interval_and_no_p(values: list[float]) -> None:
    assert bootstrap_interval(values) is None
    assert sign_flip_p(values) is None


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, -7.3])
def test_equal_values_have_an_interval_without_width(value: float) -> None:
    assert bootstrap_interval([value] * 5) == (value, value)
    assert describe_seeds([value] * 3).mean == value


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 1.0, 1.0, 1.0, 0.999],
        [1.0, 1.0 + 2.3e-16],
        [0.9, 0.9, 0.9 + 1.2e-16],
        [1e-200, 2e-200, 3e-200],  # the acceleration is 0 / 0
        [1e300, 1.0, 2.0],  # and here inf / inf
    ],
)
def test_nearly_degenerate_values_give_no_warning_and_no_nan(values: list[float]) -> None:
    found = bootstrap_interval(values)
    assert found is not None
    assert min(values) <= found[0] <= found[1] <= max(values)


@settings(max_examples=50, deadline=None)
@given(st.lists(NUMBERS, min_size=2, max_size=7), st.randoms())
def test_every_interval_is_ordered_and_the_same_in_any_order(
    values: list[float], chance: random.Random
) -> None:
    found = bootstrap_interval(values)
    assert found is not None
    assert min(values) <= found[0] <= found[1] <= max(values)
    shuffled = chance.sample(values, len(values))
    assert bootstrap_interval(shuffled) == found
    assert sign_flip_p(shuffled) == sign_flip_p(values)


@pytest.mark.parametrize(("count", "low", "high"), [(5, 0.75, 0.90), (10, 0.85, 0.95)])
def test_intervals_of_few_values_are_too_narrow_by_what_is_said(
    count: int, low: float, high: float
) -> None:
    chance, draws = random.Random(7), 400
    samples = ([chance.gauss(0, 1) for _ in range(count)] for _ in range(draws))
    intervals = [bootstrap_interval(sample, resamples=499) for sample in samples]
    assert low < sum(ends is not None and ends[0] <= 0 <= ends[1] for ends in intervals) / draws < high


def test_five_differences_of_one_sign_give_the_smallest_p_there_is() -> None:
    assert sign_flip_p([0.1, 0.2, 0.3, 0.4, 0.5]) == 2 / 32
    assert sign_flip_p([-0.1] * 5) == 2 / 32
    assert sign_flip_p([0.3] * 6) == 2 / 64


def test_sign_flips_by_hand() -> None:
    """|1 + 2 - 4| = 1: of 8 patterns all have at least 1; |-1 + 2 + 4| = 5: +-(7) and +-(5) do."""
    assert sign_flip_p([1.0, 2.0, -4.0]) == 1.0
    assert sign_flip_p([-1.0, 2.0, 4.0]) == 4 / 8
    assert sign_flip_p([0.0, 0.0, 1.0, 1.0, 1.0]) == 8 / 32
    assert sign_flip_p([0.0] * 5) == 1.0


def test_sums_that_are_equal_but_for_rounding_count_as_equal() -> None:
    assert 0.1 + 0.2 - 0.3 != 0
    assert sign_flip_p([0.1, 0.2, -0.3]) == 1.0
    assert sign_flip_p([0.3, -0.1, 0.2]) == sign_flip_p([3.0, -1.0, 2.0]) == 4 / 8


def test_sign_flips_are_every_pattern() -> None:
    chance = random.Random(3)
    differences = [chance.gauss(0.4, 1) for _ in range(11)]
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=11)
    ]
    hits = sum(each >= abs(sum(differences)) - 1e-9 for each in sums)
    assert sign_flip_p(differences) == hits / 2**11


def test_sign_flips_agree_with_scipy() -> None:
    from scipy.stats import permutation_test

    differences = [0.31, -0.12, 0.55, 0.07, -0.4, 0.9, 0.23]
    found = permutation_test(
        (differences,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", vectorized=True
    )
    assert sign_flip_p(differences) == pytest.approx(found.pvalue, abs=1e-12)


def test_many_differences_are_sampled_and_p_is_never_zero() -> None:
    assert sign_flip_p([1.0] * 31) == 1 / 10_000
    chance = random.Random(5)
    differences = [chance.gauss(0.3, 1) for _ in range(17)]
    p = sign_flip_p(differences)
    assert p == sign_flip_p([-d for d in differences]) == sign_flip_p(differences[::-1])
    every = [0.0]
    for d in differences:
        every = [s + d for s in every] + [s - d for s in every]
    exact = sum(abs(s) >= abs(sum(differences)) for s in every) / len(every)
    assert p == pytest.approx(exact, abs=0.02)


def test_holm_by_hand() -> None:
    """Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1: 0.04, 0.06, 0.06 and, kept from falling, 0.06."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.0625, 0.7]) == [1.0, 0.1875, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=11))
def test_holm_only_raises_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[i] for i in order] == sorted(adjusted)


def test_seeds_without_a_value_stay_in_their_place() -> None:
    found = describe_seeds([3, None, 5.0, nan, inf])
    assert found == SeedValues(
        values=[3.0, None, 5.0, None, None], n=2, mean=4.0, interval=(3.0, 5.0), anecdotal=False
    )
    assert found.known == [3.0, 5.0]


def test_one_seed_is_anecdotal_and_none_is_nothing() -> None:
    assert describe_seeds([None, 0.7]) == SeedValues(
        values=[None, 0.7], n=1, mean=0.7, interval=None, anecdotal=True
    )
    assert describe_seeds([None, None]) == SeedValues(
        values=[None, None], n=0, mean=None, interval=None, anecdotal=False
    )
    assert describe_seeds([]).n == 0


def test_differences_are_paired_by_seed() -> None:
    found = compare_seeds([5.0, None, 7, 9.0, 2.0], [1.0, 1.0, 4.0, None, 0.0])
    assert found.differences == [4.0, None, 3.0, None, 2.0]
    assert (found.n, found.mean, found.p) == (3, 3.0, 2 / 8)
    assert found.interval == bootstrap_interval([4.0, 3.0, 2.0])
    assert compare_seeds([1.0, None], [0.5, 2.0]) == SeedDifferences(
        differences=[0.5, None], n=1, mean=0.5, interval=None, p=None
    )


def test_pairs_need_the_same_seeds() -> None:
    with pytest.raises(ValueError, match="zip"):
        compare_seeds([1.0, 2.0], [1.0])


def test_recorded_differences_come_out_again() -> None:
    compared = 0
    for path in sorted((Path(__file__).parents[1] / "results").glob("*/study.json")):
        result = read_results(path.parent)
        assert result is not None
        assert json.dumps(result.to_json(), indent=2, ensure_ascii=False) + "\n" == path.read_text()
        for row in result.differences:
            mine, base = (result.variant(name).measures for name in (row.variant, result.baseline or ""))
            found = compare_seeds(mine[row.measure].values, base[row.measure].values)
            assert (found.p, found.mean, found.interval) == (row.p, row.mean, row.interval)
            compared += 1
    assert compared == 67
