"""What a sweep tells at its end: the ranking, the best spec, edges, importances, pictures."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from attnlab.errors import SpecError
from attnlab.runs import EpochRecord
from attnlab.specs import Spec, from_json, to_json
from attnlab.storage import as_json
from attnlab.studies.jobs import Job
from attnlab.studies.sweeps.outcome import (
    best_again,
    collect_sweep,
    converged,
    edges,
    keep_sweep,
    rank,
    scales,
    stability,
)
from attnlab.studies.sweeps.parts import SweepResult, TrialResult
from attnlab.tables.sweep import trials_table
from made_up_sweeps import LR, MANY, in_memory, jobs, line, make_run, opened, play, played, short, tell


@pytest.fixture
def folder() -> Iterator[Path]:
    with in_memory() as place:
        yield place


def test_a_failed_trial_is_kept_with_its_error_and_others_go_on(folder: Path) -> None:
    file, pool = short(LR), folder / "pool"
    with opened(file, folder, count=3) as sweep:
        (job,) = jobs(sweep, 1)
        tell(sweep, job, "failed", pool, error="the loss became nan at step 3", final=True)
    outcome, _ = played(file, folder, count=3)
    assert [trial["state"] for trial in outcome["trials"]] == ["failed", "finished", "finished"]
    assert [trial["error"] for trial in outcome["trials"]] == ["the loss became nan at step 3", None, None]
    assert sorted(outcome["ranking"]) == [1, 2]


def test_the_metric_is_that_of_the_weights_that_are_kept(folder: Path) -> None:
    values = {1: 0.25, 2: 0.75, 3: 0.5}
    outcome, _ = played(short(LR), folder, lambda spec, epoch: values[epoch], count=1)
    (trial,) = outcome["trials"]
    assert outcome["best"] == trial
    assert trial["value"] == 0.75
    assert trial["stability"] == 0.125
    assert trial["steps_to_converge"] == 20.0
    assert (trial["epochs"], trial["parameter_count"]) == (3, 7)


def test_stability_is_the_deviation_of_the_second_half() -> None:
    assert stability([0.0, 9.0, 0.5, 0.75]) == 0.125
    assert stability([9.0, 1.0, 3.0]) == 1.0
    assert stability([1.0, 2.0]) == 0.0
    assert stability([1.0]) is stability([]) is None


@pytest.mark.parametrize(
    ("values", "best", "step"),
    [
        ([0.0, 0.5, 0.98, 0.99, 1.0], 5, 40.0),
        ([0.0, 0.5, 0.98, 0.989, 1.0], 5, 50.0),
        ([10.0, 1.0, 0.05, 0.0], 4, 30.0),  # a loss falls
        ([0.0, 2.0, 1.0], 3, 20.0),  # past the kept value is far enough
        ([0.5, 0.75, 0.5], 1, 10.0),
        ([0.5, 0.75, 0.5], 3, 10.0),
        ([0.5], 0, None),
    ],
)
def test_converged_at_99_percent_of_the_way(values: list[float], best: int, step: float | None) -> None:
    lines = [line(epoch, value, best=epoch == best) for epoch, value in enumerate(values, 1)]
    epochs = [from_json(EpochRecord, each, extra=True) for each in lines]
    assert converged(epochs, values) == step


def row(number: int, value: float, spread: float | None, steps: float | None, size: int) -> TrialResult:
    return TrialResult(
        number=number,
        state="finished",
        value=value,
        parameters={},
        run="",
        error=None,
        epochs=1,
        stability=spread,
        steps_to_converge=steps,
        parameter_count=size,
    )


def test_ranked_by_metric_then_stability_then_steps_then_size() -> None:
    rows = [
        row(0, 0.9, 0.3, 30.0, 300),
        row(1, 0.8, 0.2, 5.0, 20),
        row(2, 0.8, 0.1, 20.0, 50),
        row(3, 0.8, 0.1, 10.0, 200),
        row(4, 0.8, 0.1, 10.0, 100),
        row(5, 0.8, 0.1, 10.0, 100),
        row(6, 0.8, None, 10.0, 100),
        row(7, 0.7, 0.0, 0.0, 0),
    ]
    upwards = sorted(rows, key=lambda each: rank(each, "maximize"))
    downwards = sorted(rows, key=lambda each: rank(each, "minimize"))
    assert [each.number for each in upwards] == [0, 4, 5, 3, 2, 1, 6, 7]
    assert [each.number for each in downwards] == [7, 4, 5, 3, 2, 1, 6, 0]


def test_the_best_spec_is_that_of_the_first_in_the_ranking(folder: Path) -> None:
    file, pool = short({"training.lr": [0.1, 0.01, 0.001]}, method="grid"), folder / "pool"
    with opened(file, folder) as sweep:
        play(sweep, pool)
        outcome = collect_sweep(sweep, pool, command="attnlab sweep small")
        keep_sweep(sweep, outcome)
        best = from_json(Spec, json.loads((sweep.folder / "best.json").read_text()))
        assert outcome.ranking == [1, 0, 2]
        assert best == sweep.spec_of(sweep.trials()[1])
        assert best.training.lr == 0.01
        assert SweepResult.from_json(json.loads((sweep.folder / "trials.json").read_text())) == outcome
        assert outcome.command == "attnlab sweep small"
        assert outcome.timings == {"0": 2.0, "1": 2.0, "2": 2.0}
        assert trials_table(outcome, rows=2).rows == (
            ("1", "finished", "96.67%", "0.83%", "30", "7", "0.01"),
            ("0", "finished", "71.67%", "0.83%", "30", "7", "0.1"),
        )


def test_nothing_finished_is_no_best_spec(folder: Path) -> None:
    with opened(short(LR), folder) as sweep:
        (job,) = jobs(sweep, 1)
        tell(sweep, job, "failed", folder / "pool", error="no", final=True)
        outcome = collect_sweep(sweep, folder / "pool", command="")
        keep_sweep(sweep, outcome)
        assert (outcome.best, outcome.ranking, outcome.edges) == (None, [], [])
        assert not (sweep.folder / "best.json").exists()
        assert trials_table(outcome).rows == (("0", "failed", "-", "-", "-", "-", mine(job)),)


def mine(job: Job) -> str:
    return f"{job.spec.training.lr:.4g}"


EDGES = {
    "training.lr": "log 1e-4 .. 1e-2",
    "model.dropout": "0.0 .. 0.2",
    "model.hidden": "4 .. 9",
    "model.heads": [4, 1, 2],
    "model.norm": ["pre", "post"],
}


def test_a_best_value_at_the_edge_is_named(folder: Path) -> None:
    inner = {"training.lr": 1e-3, "model.dropout": 0.1, "model.hidden": 5, "model.heads": 2}
    lowest = {"training.lr": 1.2e-4, "model.dropout": 0.005, "model.hidden": 4, "model.heads": 1}
    highest = {"training.lr": 9e-3, "model.dropout": 0.195, "model.hidden": 9, "model.heads": 4}
    named = {
        "training.lr": "0.0001 .. 0.01, log",
        "model.dropout": "0 .. 0.2",
        "model.hidden": "4 .. 9, whole numbers",
        "model.heads": "one of 4, 1, 2",
    }
    with opened(short(EDGES), folder) as sweep:
        assert edges(sweep, {**inner, "model.norm": "pre"}) == []
        for values, side, where in ((lowest, "lower", "below"), (highest, "upper", "above")):
            for key in inner:
                sentence = (
                    f"{key} is best at {values[key]:.4g}, the {side} edge of {named[key]}: "
                    f"the optimum may lie {where}"
                )
                assert edges(sweep, {**inner, "model.norm": "post", key: values[key]}) == [sentence]


@pytest.mark.parametrize(("best", "named"), [(1, True), (2, False), (3, True)])
def test_a_planted_optimum_at_the_edge_is_found(best: int, named: bool, folder: Path) -> None:
    file = short({"model.heads": [1, 2, 3]}, method="grid")
    outcome, _ = played(file, folder, lambda spec, epoch: 1 - abs(to_json(spec.model)["heads"] - best) / 10)
    assert outcome["best"]["parameters"] == {"model.heads": best}
    assert bool(outcome["edges"]) == named


def test_importance_finds_the_one_parameter_that_matters(folder: Path) -> None:
    file = short(MANY, method="random")
    few, _ = played(file, folder, count=9)
    assert len(few["ranking"]) == 9
    assert few["importance"] == {}
    shares = played(file, folder, count=16)[0]["importance"]
    assert set(shares) == {"training.lr", "model.dropout", "model.heads"}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["training.lr"] > 0.7


def test_importance_needs_different_values(folder: Path) -> None:
    outcome, _ = played(short(LR, method="random"), folder, lambda spec, epoch: 0.5, count=10)
    assert len(outcome["ranking"]) == 10
    assert outcome["importance"] == {}


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def test_tables_and_pictures_are_kept(folder: Path) -> None:
    search = {"model.heads": [1, 2, 3, 6], "model.norm": ["pre", "post"], "model.dropout": [0.0, 0.5]}
    file, pool = short(search, method="grid"), folder / "pool"

    def score(spec: Spec, epoch: int) -> float:
        model = to_json(spec.model)
        return float(model["heads"]) / 10 if epoch > 1 or model["norm"] == "pre" else 0.0

    with opened(file, folder) as sweep:
        play(sweep, pool, score)
        make_run(pool, sweep.spec_of(sweep.trials()[13]), [line(1, 0.6)] * 2, parameters=6)
        outcome = collect_sweep(sweep, pool, command="")
        keep_sweep(sweep, outcome)
        assert scales(sweep) == {"model.heads": "linear", "model.norm": "choice", "model.dropout": "linear"}
        found = {
            path.stem: json.loads(path.read_text(), parse_constant=no_constant)
            for path in sweep.folder.glob("*.json")
        }
        for name in ("history", "parallel", "importance"):
            assert ElementTree.parse(sweep.folder / f"{name}.svg").getroot().tag.endswith("svg")
    assert found["history"]["finished"]["number"] == list(range(16))
    assert found["history"]["best"] == [0.1] * 4 + [0.2] * 4 + [0.3] * 4 + [0.6] * 4
    assert [axis["name"] for axis in found["parallel"]["axes"]] == [*search, "valid_exact_match"]
    assert found["parallel"]["best"] == {"number": 13, "value": 0.6}  # of four equals, the smallest
    assert found["importance"]["names"][0] == "model.heads"


def test_the_best_are_trained_again_with_fresh_seeds(folder: Path) -> None:
    file = short({"training.lr": [0.1, 0.01, 0.001], "seed": [3, 8]}, method="grid")
    with opened(file, folder, seed=5) as sweep:
        play(sweep, folder / "pool")
        outcome = collect_sweep(sweep, folder / "pool", command="")
        study = best_again(sweep, outcome, count=3, seeds=2)
    assert study.seed_list == [9, 10]
    assert list(study.variants) == ["trial 2", "trial 3", "trial 0"]
    assert [spec.training.lr for spec in study.variants.values()] == [0.01, 0.01, 0.1]
    assert study.analyses == ("evaluate-test",)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("ranking", [1, 7], "the ranking names trial 7, which is not among the trials"),
        ("searched", {"training.lr": "", "seed": ""}, "trial 0 has no value of 'seed'"),
    ],
)
def test_a_result_whose_parts_do_not_fit_is_refused(
    key: str, value: Any, sentence: str, folder: Path
) -> None:
    file = short({"training.lr": [0.1, 0.01]}, method="grid")
    with opened(file, folder) as sweep:
        play(sweep, folder / "pool")
        found = json.loads(as_json(collect_sweep(sweep, folder / "pool", command="").to_json()))
    with pytest.raises(SpecError, match=sentence):
        SweepResult.from_json({**found, key: value})
