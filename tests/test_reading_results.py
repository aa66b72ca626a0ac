"""What the results on reading digits have to show."""

import json
from pathlib import Path
from statistics import mean
from typing import Any

from attnlab.spec import to_json
from attnlab.studies import STUDIES, find_study

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


def test_a_step_at_its_best_is_faster_than_every_rival() -> None:
    found = read("digits/step.json")
    for step in found["steps"].values():
        assert step["ratios"]["each at its best"] >= 1.2
    assert found["decoding"]["ratios"]["cached"] >= 2


def test_what_is_shipped_is_a_run_of_the_study() -> None:
    shipped = json.loads((ZOO / "digit/spec.json").read_text())
    assert shipped == to_json(find_study("digits-vit", STUDIES).spec("vit", 0))
    kept = json.loads((ZOO / "digit/analysis/evaluate-test.json").read_text())
    assert kept["exact_match"] == values("digits-vit", "vit", "accuracy")[0]


def test_the_zoo_is_small() -> None:
    assert sum(path.stat().st_size for path in ZOO.rglob("*") if path.is_file()) < 12e6
