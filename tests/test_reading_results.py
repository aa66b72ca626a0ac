"""What the results on reading digits and grids have to show."""

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from attnlab.specs import to_json
from attnlab.studies.study import find_study, read_catalogue

RESULTS = Path(__file__).parent.parent / "results"
ZOO = Path(__file__).parent.parent / "src/attnlab/zoo"


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text())
    return found


def values(study: str, variant: str, measure: str) -> list[float]:
    (found,) = (each for each in read(f"{study}/study.json")["variants"] if each["name"] == variant)
    seeds: list[float] = found["measures"][measure]["values"]
    assert len(seeds) >= 3
    return seeds


def test_the_vision_transformer_reads_its_digits() -> None:
    assert mean(values("digits-vit", "vit", "accuracy")) >= 0.995
    assert max(read("digits-vit/study.json")["timings"]["vit"]) <= 45 * 60


def test_convolutions_are_told_apart() -> None:
    without = values("digits-vit", "linear patches", "accuracy")
    assert mean(without) < mean(values("digits-vit", "vit", "accuracy"))


def test_the_encoder_decoder_reads_its_grids() -> None:
    assert mean(values("grids-seeds", "default", "exact_match")) >= 0.98
    assert max(read("grids-seeds/study.json")["timings"]["default"]) <= 75 * 60
    cells = [mean(values("grids-seeds", "default", f"cell_{place}")) for place in range(4)]
    assert mean(cells) == pytest.approx(mean(values("grids-seeds", "default", "digits")))


@pytest.mark.parametrize("study", ["digits-parts", "grids-parts"])
def test_every_ingredient_was_taken_away(study: str) -> None:
    found = read(f"{study}/study.json")
    assert found["complete"]
    assert {each["name"] for each in found["variants"]} == set(find_study(study, read_catalogue()).variants)
    assert len(found["differences"]) >= len(found["variants"]) - 1


@pytest.mark.parametrize(
    ("task", "epochs", "right", "ratio"),
    [("digits", 1, 0.9757, 20), ("digits", 3, 0.99, 6), ("grids", 2, 0.875, 10)],
)
def test_the_reference_is_reached_in_a_fraction_of_its_time(
    task: str, epochs: int, right: float, ratio: float
) -> None:
    found = read(f"{task}/time.json")
    rows = [row for row in found["rows"] if row["epochs"] == epochs]
    assert len(rows) >= 3
    assert min(row[found["measure"]] for row in rows) >= right
    assert min(row["ratio"] for row in rows) >= ratio


def test_a_step_at_its_best_is_faster_than_every_rival() -> None:
    found = read("digits/step.json")
    for step in found["steps"].values():
        assert step["ratios"]["each at its best"] >= 1.2
    assert found["decoding"]["ratios"]["cached"] >= 2


def test_muon_for_stacks_pays_and_moves_weights_as_torchs_does() -> None:
    for found in read("muon/step.json")["presets"].values():
        assert found["ratio"] >= 1.05
        assert found["learned"]["same_bytes"]


@pytest.mark.parametrize(
    ("name", "study", "variant", "measure"),
    [("digit", "digits-vit", "vit", "accuracy"), ("grid", "grids-seeds", "default", "exact_match")],
)
def test_what_is_shipped_is_a_run_of_the_study(name: str, study: str, variant: str, measure: str) -> None:
    shipped = json.loads((ZOO / name / "spec.json").read_text())
    assert shipped == to_json(find_study(study, read_catalogue()).spec(variant, shipped["seed"]))
    kept = json.loads((ZOO / name / "analysis/evaluate-test.json").read_text())
    assert kept["exact_match"] == values(study, variant, measure)[shipped["seed"]]


def test_the_zoo_is_small() -> None:
    assert sum(path.stat().st_size for path in ZOO.rglob("*") if path.is_file()) < 12e6
