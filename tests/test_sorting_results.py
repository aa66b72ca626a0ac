"""What the results on sorted lists have to show."""

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

RESULTS = Path(__file__).parent.parent / "results"


def study(name: str) -> dict[str, Any]:
    """What a study found, by variant."""
    found = json.loads((RESULTS / name / "study.json").read_text())
    assert len(found["seeds"]) >= 5
    return {variant["name"]: variant for variant in found["variants"]}


def seeds(variant: dict[str, Any], measure: str) -> list[float]:
    values: list[float] = variant["measures"][measure]["values"]
    return values


def curve(variant: dict[str, Any], name: str) -> dict[int, list[float]]:
    return {row["at"]: row["values"] for row in variant["curves"][name]}


@pytest.mark.parametrize("negatives", ["swap", "reference"])
def test_short_lessons_tell_lists_of_any_length(negatives: str) -> None:
    found = curve(study("sorting-lengths")["default"], negatives)
    for length in (8, 12, 16, 256, 4096):
        assert mean(found[length]) >= 0.999
    assert mean(found[16384]) >= 0.995


def test_default_trains_in_three_minutes() -> None:
    found = json.loads((RESULTS / "lengths/training.json").read_text())
    assert found["preset"] == "default"
    assert len(found["rows"]) >= 3
    assert max(row["seconds"] for row in found["rows"]) <= 180


def test_attention_to_all_numbers_tells_1024_of_them() -> None:
    found = study("sorting-global-seeds")["global"]
    assert len(seeds(found, "swap_1024")) == 10
    assert mean(seeds(found, "swap_1024")) >= 0.99
    assert mean(seeds(found, "reference_1024")) >= 0.99


def test_what_attention_to_all_numbers_needs() -> None:
    """As the page says: places first, then the softmax, and not the pooling."""
    right = {name: mean(seeds(found, "swap_1024")) for name, found in study("sorting-global").items()}
    lost = {name: right["all parts"] - each for name, each in right.items()}
    assert lost["rotary"] > lost["no log n"] > lost["finer buckets"] > lost["lists of the default"] > 0.005
    assert abs(lost["lowest in place of mean"]) < 0.005


def test_the_reference_failed_and_its_pooling_compared_neighbours() -> None:
    found = study("sorting-reference")
    for positions in ("sinusoidal", "learned", "none"):
        assert mean(seeds(found[f"{positions}, mean"], "reference_256")) < 0.6
    for positions in ("learned", "none"):
        assert mean(seeds(found[f"{positions}, boundary"], "reference_256")) > 0.99
        assert mean(seeds(found[f"{positions}, boundary"], "swap_256")) < 0.55


def test_a_mean_over_a_window_thins_out_and_a_minimum_does_not() -> None:
    found = {name: mean(seeds(each, "margin_exponent")) for name, each in study("sorting-margins").items()}
    assert found["window, mean"] == pytest.approx(-1, abs=0.2)
    assert found["window, lowest"] == pytest.approx(0, abs=0.1)
    assert found["all tokens, mean"] == pytest.approx(0, abs=0.1)


def test_every_encoding_met_every_pooling() -> None:
    found = study("sorting-factorial")
    assert len(found) == 64
    right = {name: mean(seeds(variant, "reference_256")) for name, variant in found.items()}
    compared = [name for name in right if name.endswith(", boundary")]
    assert min(right[name] for name in compared) == 1
    for name in right.keys() - set(compared):
        if name.startswith(("sinusoidal", "rotary")):
            assert right[name] <= 0.505
    swapped = {name: mean(seeds(variant, "swap_256")) for name, variant in found.items()}
    assert max(value for name, value in swapped.items() if not name.startswith("relative")) < 0.52
    assert 0.65 < max(swapped.values()) < 0.7
