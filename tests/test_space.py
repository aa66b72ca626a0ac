"""Distributions of sweeps: quantiles against scipy's, lists for grids, and edges."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnlab.errors import SpecError
from attnlab.studies.sweeps.space import (
    MOST_VALUES,
    Choice,
    Distribution,
    Fixed,
    Integers,
    LogNormal,
    LogUniform,
    Normal,
    Stepped,
    Uniform,
    WeightedChoice,
)

shares = st.floats(0, 1, exclude_max=True)
inner = st.floats(0.001, 0.999)
numbers = st.floats(-1e6, 1e6)
positive = st.floats(1e-6, 1e6)
positive_bounds = st.tuples(positive, positive).map(sorted)


@given(numbers, positive, shares)
def test_uniform_is_scipys(low: float, more: float, u: float) -> None:
    wanted = stats.uniform(low, more).ppf(u)
    assert Uniform(low=low, high=low + more).quantile(u) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@given(positive_bounds, shares)
def test_log_uniform_is_scipys(ends: list[float], u: float) -> None:
    low, high = ends
    value = LogUniform(low=low, high=high).quantile(u)
    assert low <= value <= high
    if high > low * 1.001:
        assert value == pytest.approx(stats.loguniform(low, high).ppf(u))


@given(st.integers(-50, 50), st.integers(0, 40), st.floats(0, 0.999))
def test_integers_are_scipys(low: int, more: int, u: float) -> None:
    # Where u is a multiple of 1/n the two may differ: ours takes the value that begins there.
    wanted = stats.randint(low, low + more + 1).ppf(u + 1e-9)
    value = Integers(low=low, high=low + more).quantile(u)
    assert value == wanted or value == stats.randint(low, low + more + 1).ppf(u)
    assert type(value) is int


@given(numbers, st.floats(0.01, 1e3), inner)
def test_normal_is_scipys(mu: float, sigma: float, u: float) -> None:
    wanted = stats.norm(mu, sigma).ppf(u)
    assert Normal(mu=mu, sigma=sigma).quantile(u) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@given(st.floats(-20, 20), st.floats(0.01, 10), inner)
def test_log_normal_is_scipys(mu: float, sigma: float, u: float) -> None:
    wanted = stats.lognorm(s=sigma, scale=math.exp(mu)).ppf(u)
    assert LogNormal(mu=mu, sigma=sigma).quantile(u) == pytest.approx(wanted, rel=1e-9)


def test_normals_are_finite_at_both_ends() -> None:
    last = math.nextafter(1, 0)
    assert Normal().quantile(0.0) == pytest.approx(-8.29, abs=0.01)
    assert Normal().quantile(last) == pytest.approx(8.21, abs=0.01)
    assert Normal(mu=3.0, sigma=0.0).quantile(0.0) == 3.0
    assert (
        0 < LogNormal(mu=-600.0, sigma=11.0).quantile(0.0) < LogNormal(mu=600.0).quantile(last) < math.inf
    )


def test_integers_are_equally_likely() -> None:
    drawn = [Integers(low=3, high=9).quantile(place / 700) for place in range(700)]
    assert [drawn.count(value) for value in range(3, 10)] == [100] * 7


def test_choices_by_their_share() -> None:
    drawn = [Choice(options=("a", "b", "c")).quantile(place / 300) for place in range(300)]
    assert drawn == ["a"] * 100 + ["b"] * 100 + ["c"] * 100
    weighted = WeightedChoice(options=("a", "b", "c", "d"), probabilities=(0.0, 0.25, 0.75, 0.0))
    drawn = [weighted.quantile(place / 100) for place in range(100)]
    assert drawn == ["b"] * 25 + ["c"] * 75
    assert weighted.quantile(math.nextafter(1, 0)) == "c"


def test_a_weighted_choice_whose_sum_falls_short_takes_the_last() -> None:
    thirds = WeightedChoice(options=(1, 2, 3), probabilities=(0.3333333, 0.3333333, 0.3333333))
    assert thirds.quantile(0.99999999) == 3


@pytest.mark.parametrize(
    ("distribution", "u", "wanted"),
    [
        (Stepped(of=Uniform(low=0.0, high=1.0), step=0.1), 0.31, 0.3),
        (Stepped(of=Uniform(low=0.0, high=10.0)), 0.26, 3),
        (Stepped(of=Uniform(low=0.0, high=10.0)), 0.25, 2),  # a half goes to the even one, as at W&B
        (Stepped(of=Uniform(low=0.0, high=1.9)), 0.99, 2),  # past max, as at W&B
        (Stepped(of=Uniform(low=16.0, high=512.0), step=32.0), 0.5, 256),
        (Stepped(of=LogUniform(low=1.0, high=100.0)), 0.5, 10),
        (Stepped(of=LogUniform(low=0.1, high=100.0)), 0.0, 0),
    ],
)
def test_steps_by_hand(distribution: Stepped, u: float, wanted: float) -> None:
    value = distribution.quantile(u)
    assert (value, type(value)) == (wanted, type(wanted))


def examples() -> list[Distribution]:
    return [
        Fixed(value="x"),
        Choice(options=(2, 4, 8)),
        WeightedChoice(options=(1, 2, 3), probabilities=(0.5, 0.25, 0.25)),
        Integers(low=-2, high=7),
        Uniform(low=-1.0, high=3.0),
        LogUniform(low=1e-4, high=1e-2),
        Stepped(of=Uniform(low=0.05, high=0.95), step=0.1),
        Stepped(of=LogUniform(low=3.0, high=300.0), step=5.0),
        Normal(mu=2.0, sigma=0.5),
        LogNormal(mu=2.0, sigma=0.5),
    ]


@pytest.mark.parametrize("distribution", examples(), ids=lambda d: d.describe())
@given(u=shares, v=shares)
def test_quantiles_rise_and_stay_among_the_values(distribution: Distribution, u: float, v: float) -> None:
    one, other = distribution.quantile(min(u, v)), distribution.quantile(max(u, v))
    assert one <= other
    values = distribution.values()
    assert values is None or {one, other} <= set(values)


def test_lists_for_grids() -> None:
    lists = [distribution.values() for distribution in examples()]
    assert lists[:4] == [("x",), (2, 4, 8), (1, 2, 3), tuple(range(-2, 8))]
    assert lists[4:6] == [None, None]
    assert lists[6] == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert lists[7] == tuple(range(5, 301, 5))
    assert lists[8:] == [None, None]


def test_a_list_too_long_to_try_is_none() -> None:
    assert len(Integers(low=1, high=MOST_VALUES).values() or ()) == MOST_VALUES
    assert Integers(low=0, high=MOST_VALUES).values() is None
    assert Stepped(of=Uniform(low=0.0, high=1.0), step=1e-5).values() is None


@pytest.mark.parametrize(
    ("distribution", "lower", "upper", "neither"),
    [
        (Uniform(low=0.0, high=1.0), [0.0, 0.05, 0], [0.95, 1.0, 1], [0.06, 0.5, 0.94]),
        (LogUniform(low=1e-4, high=1.0), [1e-4, 1.5e-4], [0.7, 1.0, 1], [1.6e-4, 0.01, 0.6]),
        (Integers(low=1, high=100), [1], [100, 100.0], [2, 50, 99]),
        (Integers(low=1, high=2), [], [], [1, 2]),
        (Choice(options=(2, 8, 4.0)), [2, 2.0], [8], [4]),
        (Choice(options=(2, 4)), [], [], [2, 4]),
        (Choice(options=("a", "b", "c")), [], [], ["a", "b", "c"]),
        (Choice(options=(1, 2, True)), [], [], [1, 2, True]),
        (WeightedChoice(options=(1, 2, 3), probabilities=(0.5, 0.25, 0.25)), [1], [3], [2]),
        (Stepped(of=Uniform(low=0.0, high=10.0)), [0], [10], [1, 9]),
        (Stepped(of=Uniform(low=0.0, high=1.0), step=0.01), [0.0, 0.04], [0.96, 1.0], [0.06, 0.94]),
        (Stepped(of=LogUniform(low=0.1, high=100.0)), [0], [100, 90], [1, 50]),
        (Stepped(of=Uniform(low=0.0, high=1.0)), [], [], [0, 1]),
        (Uniform(low=2.0, high=2.0), [], [], [2.0]),
        (LogUniform(low=2.0, high=2.0), [], [], [2.0]),
        (Normal(), [], [], [-9.0, 0.0, 9.0]),
        (LogNormal(), [], [], [1e-9, 1e9]),
        (Fixed(value=3), [], [], [3]),
    ],
)
def test_edges(distribution: Distribution, lower: list[Any], upper: list[Any], neither: list[Any]) -> None:
    assert [distribution.edge(value) for value in lower] == ["lower"] * len(lower)
    assert [distribution.edge(value) for value in upper] == ["upper"] * len(upper)
    assert [distribution.edge(value) for value in neither] == [None] * len(neither)


@given(shares)
def test_the_edges_of_ranges_are_the_outer_twentieths_of_what_is_drawn(u: float) -> None:
    wanted = "lower" if u < 0.0499 else "upper" if u > 0.9501 else None
    if 0.0499 <= u <= 0.0501 or 0.9499 <= u <= 0.9501:
        return
    for distribution in (Uniform(low=-3.0, high=5.0), LogUniform(low=1e-5, high=1e3)):
        assert distribution.edge(distribution.quantile(u)) == wanted


@pytest.mark.parametrize(
    ("distribution", "text"),
    [
        (Fixed(value=3), "always 3"),
        (Choice(options=(2, 4, 8)), "one of 2, 4, 8"),
        (
            Choice(options=(0.5, {"kind": "none"}, {"kind": "rotary", "base": 500.0})),
            "one of 0.5, none, rotary:base=500",
        ),
        (WeightedChoice(options=("a", "b"), probabilities=(0.25, 0.75)), "one of a (25%), b (75%)"),
        (Integers(low=1, high=4), "1 .. 4, whole numbers"),
        (Uniform(low=0.0, high=0.3), "0 .. 0.3"),
        (LogUniform(low=1e-4, high=1e-2), "0.0001 .. 0.01, log"),
        (Stepped(of=LogUniform(low=16.0, high=512.0), step=16.0), "16 .. 512, log, in steps of 16"),
        (Normal(), "normal, mean 0, deviation 1"),
        (LogNormal(mu=-7.0, sigma=0.5), "e^X, X normal, mean -7, deviation 0.5"),
    ],
)
def test_descriptions(distribution: Distribution, text: str) -> None:
    assert distribution.describe() == text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Uniform(low=2.0, high=1.0), "min is 2.0, but it must be at most max, 1.0"),
        (lambda: Integers(low=2, high=1), "min is 2, but it must be at most max, 1"),
        (
            lambda: Uniform(low=math.nan, high=1.0),
            "min is nan, but it must be a finite number below 2^53 in size",
        ),
        (lambda: Uniform(low=0.0, high=math.inf), "max is inf, but it must be a finite number below 2^53"),
        (lambda: Integers(low=0, high=10**400), "but it must be a finite number below 2^53 in size"),
        (lambda: LogUniform(low=0.0, high=1.0), "min is 0.0, but it must be above 0 on a log scale"),
        (lambda: LogUniform(low=math.nan, high=1.0), "min is nan, but it must be above 0 on a log scale"),
        (lambda: LogUniform(low=2.0, high=1.0), "min is 2.0, but it must be at most max, 1.0"),
        (
            lambda: Stepped(of=Uniform(low=0.0, high=1.0), step=0.0),
            "q is 0.0, but it must be above 0 and below 2^53",
        ),
        (
            lambda: Stepped(of=Uniform(low=0.0, high=3.0), step=1e-300),
            "q is 1e-300, but it must be not so small against 3",
        ),
        (lambda: Normal(mu=math.inf), "mu is inf, but it must be a finite number below 2^53 in size"),
        (lambda: Normal(sigma=-1.0), "sigma is -1.0, but it must be at least 0 and below 2^53"),
        (lambda: LogNormal(sigma=-1.0), "sigma is -1.0, but it must be at least 0 and below 2^53"),
        (
            lambda: LogNormal(mu=650.0, sigma=10.0),
            "mu, sigma is (650.0, 10.0), but it must be such that |mu| + 9 sigma is at most 700",
        ),
        (lambda: Choice(options=()), "the number of values is 0, but it must be 1 to 10000"),
        (lambda: Choice(options=(1, 2, 1.0)), "values names 1 twice, but each value must be named once"),
        (
            lambda: Choice(options=({"kind": "a", "b": 1}, {"b": 1, "kind": "a"})),
            "values names a:b=1 twice, but each value must be named once",
        ),
        (
            lambda: WeightedChoice(options=(1, 2), probabilities=(1.0,)),
            "the number of probabilities is 1, but it must be 2, one for each value",
        ),
        (
            lambda: WeightedChoice(options=(1, 2), probabilities=(1.5, -0.5)),
            "the least of probabilities is -0.5, but it must be at least 0",
        ),
        (
            lambda: WeightedChoice(options=(1, 2), probabilities=(0.5, 0.25)),
            "the sum of probabilities is 0.75, but it must be 1",
        ),
    ],
)
def test_refused_distributions(make: Callable[[], Distribution], text: str) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    assert text in str(caught.value)
