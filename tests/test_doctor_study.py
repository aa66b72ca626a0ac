"""The study of how well the doctor does: what is set apart, what counts, and how it is scored."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import f1_score

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module", autouse=True)
def benchmarks() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path.remove(str(ROOT / "benchmarks"))


def loaded(name: str) -> Any:
    return importlib.import_module(name)


def rows(*pairs: tuple[str, list[str]]) -> list[Any]:
    jobs, scoring = loaded("doctor_jobs"), loaded("doctor_scoring")
    return [scoring.Row(jobs.Job("reverse", n, variant=str(n)), *pair) for n, pair in enumerate(pairs)]


SOME: tuple[tuple[str, list[str]], ...] = (
    ("rate-too-low", ["rate-too-low"]),
    ("rate-too-low", ["diverged", "rate-too-low"]),
    ("diverged", ["diverged"]),
    ("diverged", []),
    ("healthy", []),
    ("healthy", ["diverged"]),
)


def test_each_kind_is_planted_in_both_halves() -> None:
    plants, apart = loaded("doctor_jobs").PLANTS, loaded("doctor_result").SET_APART
    for kind in {each.kind for each in plants}:
        ways = {each.name for each in plants if each.kind == kind}
        assert len(ways) >= 2
        assert len(ways & apart) == len(ways) // 2


def test_f1_is_that_of_scikit_learn() -> None:
    scoring = loaded("doctor_scoring")
    kinds = ["diverged", "healthy", "rate-too-low"]
    found = scoring.f1_by_kind(rows(*SOME), kinds)
    first = [named[0] if named else "healthy" for _, named in SOME]
    assert [*found.values()] == pytest.approx(
        f1_score([truth for truth, _ in SOME], first, labels=kinds, average=None)
    )


def test_scores_count_ranks_and_false_alarms() -> None:
    found = loaded("doctor_scoring").scores(rows(*SOME))
    assert (found["first"]["count"], found["among_three"]["count"], found["first"]["of"]) == (2, 3, 4)
    assert (found["false_alarms"]["count"], found["false_alarms"]["of"]) == (1, 2)
    assert found["confusion"]["rate-too-low"] == {"rate-too-low": 1, "diverged": 1}


def test_intervals_hold_what_was_found() -> None:
    scoring = loaded("doctor_scoring")
    whole = scoring.intervals(rows(*(pair for pair in SOME if pair[1][:1] == [pair[0]])))
    assert whole == {"macro_f1": [1.0, 1.0], "first": [1.0, 1.0], "among_three": [1.0, 1.0]}
    some = scoring.intervals(rows(*SOME))
    assert some["first"][0] <= 0.5 <= some["first"][1]


def test_a_fault_does_harm_if_the_same_examples_are_lost() -> None:
    scoring, jobs = loaded("doctor_scoring"), loaded("doctor_jobs")
    job = jobs.Job("reverse", 0, jobs.PLANTS[0])

    def outcome(wrong: int) -> dict[str, Any]:
        return {"failure": "", "right": [0] * wrong + [1] * (300 - wrong), "reported": 1.0}

    assert scoring.does_harm(job, outcome(30), outcome(10))
    assert not scoring.does_harm(job, outcome(20), outcome(10))  # less than 5%
    assert not scoring.does_harm(job, outcome(10), outcome(30))
    assert scoring.does_harm(job, {"failure": "it diverged"}, outcome(10))


def test_what_was_set_apart_is_scored_once(tmp_path: Path) -> None:
    study = loaded("doctor")
    (tmp_path / "apart.json").write_text(json.dumps({"scored": ["abc"]}))
    options = study.Options("score", "apart", runs=tmp_path, out=tmp_path)
    with pytest.raises(SystemExit, match="is scored once"):
        study.require_unseen(options)
    study.keep({"environment": {"commit": "def"}}, options)
    assert json.loads((tmp_path / "apart.json").read_text())["scored"] == ["abc", "def"]


def test_the_second_set_apart_shares_no_plant_and_no_seed_with_the_first() -> None:
    jobs, result = loaded("doctor_jobs"), loaded("doctor_result")
    second = [*jobs.second_sick_jobs(), *jobs.second_healthy_jobs()]
    first = [*jobs.sick_jobs(), *jobs.healthy_jobs()]
    assert {result.part_of(each) for each in second} == {"second"}
    assert {result.part_of(each) for each in first} == {"chosen", "apart"}
    assert not {each.seed for each in second} & {each.seed for each in first}
    known = {each.name for each in jobs.PLANTS}
    assert not {each.plant.name for each in second if each.plant} & known


def test_every_plant_in_a_model_can_still_be_planted() -> None:
    jobs = loaded("doctor_jobs")
    build_for = importlib.import_module("attnlab.models").build_for
    for plant in [*jobs.PLANTS, *jobs.SECOND_PLANTS]:
        if plant.model is not None:
            spec = jobs.base(plant.tasks[0])
            with plant.planted(spec):
                build_for(spec)
