import numpy as np
import pytest
from scipy.stats import f_oneway

from attnlab.analysis.variance import explained, sums_of_squares
from attnlab.errors import LabError

CHANCE = np.random.default_rng(7)
NOISE = CHANCE.normal(size=(3, 5, 7))


def test_sums_of_squares_add_up_to_the_whole() -> None:
    squares = sums_of_squares(NOISE)
    assert sum(squares.values()) == pytest.approx(((NOISE - NOISE.mean()) ** 2).sum())


def test_one_factor_is_what_scipy_finds() -> None:
    """With the columns pooled, F of the rows is that of a one-way analysis."""
    squares = sums_of_squares(NOISE)
    rest = squares["columns"] + squares["both"] + squares["seeds"]
    f = (squares["rows"] / 2) / (rest / (3 * 5 * 7 - 3))
    assert f == pytest.approx(f_oneway(*(row.ravel() for row in NOISE)).statistic)


@pytest.mark.parametrize("part", ["rows", "columns", "both"])
def test_a_planted_effect_is_named(part: str) -> None:
    effect = {
        "rows": np.array([-5.0, 0.0, 5.0])[:, None, None] * np.ones((3, 5, 1)),
        "columns": np.linspace(-5, 5, 5)[None, :, None] * np.ones((3, 5, 1)),
        "both": np.outer([-1.0, 0.0, 1.0], [-5.0, -2.0, 0.0, 2.0, 5.0])[:, :, None],
    }[part]
    found = explained(effect + 0.1 * NOISE, draws=200)
    assert getattr(found, part).share > 0.99
    assert getattr(found, part).interval[0] > 0.98
    assert sum(each.share for each in vars(found).values()) == pytest.approx(1)
    others = [each.share for name, each in vars(found).items() if name != part]
    assert max(map(abs, others)) < 0.01


def test_noise_explains_nothing() -> None:
    """SS of pure noise is not zero; omega squared is, on average."""
    many = [explained(np.random.default_rng(n).normal(size=(4, 4, 5)), draws=2) for n in range(60)]
    for part in ("rows", "columns", "both"):
        assert abs(float(np.mean([getattr(each, part).share for each in many]))) < 0.02


def test_equal_values_have_no_variance_to_explain() -> None:
    found = explained(np.full((2, 2, 3), 0.5), draws=3)
    assert all(each.share == 0 for each in vars(found).values())


def test_one_seed_is_too_few() -> None:
    with pytest.raises(LabError, match="2 x 3 cells with 1 seeds"):
        explained(np.zeros((2, 3, 1)))
