"""What is concluded from the study of patch attention, by numbers whose answer is known."""

import pytest
from patch_verdict import ORIGINAL, contrasts, one_more, shapley, shares, side_by_side
from study_figures import draw_probe_curves, draw_rates, probe_curves_data, rates_data

from attnlab.analysis.statistics import describe_seeds
from attnlab.figures.style import to_svg
from attnlab.problems.digits.studies import PATCH_STUDIES
from attnlab.studies.outcome import StudyResult
from made_up_results import study_result

STUDY = PATCH_STUDIES[0]


def made_up(accuracies: dict[str, list[float | None]], default: float = 0.5) -> StudyResult:
    """A result in which every other variant has the same accuracy for all seeds, a little spread."""
    spread = [default - 0.01, default, default + 0.01]
    variants = [
        {"name": name, "measures": {"accuracy": describe_seeds(accuracies.get(name, spread))}}
        for name in STUDY.variants
    ]
    return study_result({"seeds": [0, 1, 2], "variants": variants})


def test_every_row_of_the_original_is_a_variant() -> None:
    assert set(ORIGINAL) <= set(STUDY.variants)
    assert len(ORIGINAL) == 10


def test_shapley_values_share_the_gain() -> None:
    corners = {
        (w, p, r): 0.1 * w + 0.2 * p + 0.3 * r + 0.12 * p * r
        for w in (0, 1)
        for p in (0, 1)
        for r in (0, 1)
    }
    found = [shapley(corners, factor) for factor in range(3)]
    assert found == pytest.approx([0.1, 0.26, 0.36])
    assert sum(found) == pytest.approx(corners[1, 1, 1] - corners[0, 0, 0])


def test_shares_leave_out_seeds_that_diverged() -> None:
    result = made_up({"64/128, sinusoidal, lr 0.1": [0.9, None, 0.92]})
    table = shares(result, 0.1)
    assert [row[3] for row in table.rows] == ["2", "2", "2", "2"]
    assert table.rows[3][1] == "+41.00 points"
    assert table.rows[2][0] == "learning rate 0.01 to 0.1"


def test_agreement_is_with_one_more_run() -> None:
    low, high = one_more([0.4, 0.5, 0.6])
    assert (low, high) == pytest.approx((0.5 - 4.3027 * 0.1 * (4 / 3) ** 0.5, 0.9968), abs=1e-3)
    close = [value + shift for shift in (-0.01, 0.0, 0.01) for value in (0.4489,)]
    result = made_up({"64/128, uniform 0.1, lr 0.01": [*close]})
    words = {row[0]: row[-1] for row in side_by_side(result).rows}
    assert words["64/128, uniform 0.1, lr 0.01"] == "yes"
    assert words["64/128, sinusoidal, lr 0.01"] == "no"


def test_contrasts_are_paired() -> None:
    result = made_up({"16/32, uniform 0.1, lr 0.1": [0.71, 0.72, 0.73]})
    table = contrasts(result, {"rate?": ("16/32, uniform 0.1, lr 0.1", "16/32, uniform 0.1, lr 0.01")})
    assert table.rows[0][2] == "+22.00 points"


def test_rates_are_drawn_by_width_and_start() -> None:
    data = rates_data(
        made_up({"64/128, zero, lr 1": [None, None, None], "64/128, zero, lr 0.3": [0.9, None, 0.8]})
    )
    assert [panel["size"] for panel in data["panels"]] == ["16/32", "64/128"]
    (zero,) = (curve for curve in data["panels"][1]["curves"] if curve["start"] == "zero")
    assert [point["lr"] for point in zero["points"]] == [0.01, 0.03, 0.1, 0.3, 1.0]
    assert zero["points"][3]["mean"] == pytest.approx(85)
    assert zero["points"][4] == {"lr": 1.0, "mean": None, "values": [], "diverged": 3}
    assert ">4 diverged<" not in to_svg(draw_rates(data))
    assert ">3 diverged<" in to_svg(draw_rates(data))


def test_probes_are_means_over_seeds() -> None:
    found = {
        "variants": [
            {
                "name": "a variant",
                "epoch": [0, 1],
                "entropy": [[1.0, 0.5], [0.5, 0.0]],
                "moved": [[0.0, 0.25], [0.0, 0.75]],
            }
        ]
    }
    (curve,) = probe_curves_data(found)["curves"]
    assert curve["entropy"] == {"mean": [0.75, 0.25], "low": [0.5, 0.0], "high": [1.0, 0.5]}
    assert curve["moved"]["mean"] == [0.0, 0.5]
    assert ">a variant<" in to_svg(draw_probe_curves(probe_curves_data(found)))
