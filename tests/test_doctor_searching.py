"""What the doctor says of many runs together: studies and sweeps, and of a run whose test set chooses."""

from pathlib import Path
from typing import Any

import pytest

import attnlab as al
from attnlab.doctor import searching
from attnlab.doctor.diagnose import diagnose
from attnlab.doctor.findings import Finding
from attnlab.doctor.patient import Patient
from attnlab.errors import LabError
from attnlab.sets import Splits
from attnlab.storage import write_json
from attnlab.studies.outcome import StudyResult
from attnlab.studies.sweeps.parts import SweepResult
from made_up_results import BLANK, study_result
from sick_runs import learning, run_with_log

MEASURE = {"name": "accuracy", "title": "accuracy", "unit": "share", "better": "higher"}


def study(
    values: dict[str, list[float]], specs: dict[str, Any] | None = None, **changes: Any
) -> StudyResult:
    variants = [
        {
            "name": name,
            "spec": (specs or {}).get(name, {"name": name}),
            "runs": ["run"] * len(each),
            "measures": {
                "accuracy": {
                    **{"values": each, "n": len(each), "mean": sum(each) / len(each)},
                    **{"interval": None, "anecdotal": len(each) == 1},
                }
            },
        }
        for name, each in values.items()
    ]
    count = len(next(iter(values.values())))
    timings = {name: [1.0] * count for name in values}
    known = {"variants": variants, "measures": [MEASURE], "seeds": [*range(count)], "timings": timings}
    return study_result({**known, **changes})


def only(found: Any) -> Finding:
    (finding,) = al.diagnose(found).findings
    return finding


def test_a_difference_that_holds_for_every_seed_is_well() -> None:
    found = al.diagnose(study({"red": [0.9, 0.91, 0.92], "blue": [0.8, 0.79, 0.83]}))
    assert found.findings == []
    assert {each.kind: each.outcome for each in found.checks} == {
        "seed-decides": "clear",
        "test-used-to-choose": "clear",
        "optimum-at-edge": "inapplicable",
    }


def test_a_difference_that_a_seed_decides_is_found() -> None:
    finding = only(study({"red": [0.9, 0.7, 0.9, 0.7], "blue": [0.7, 0.86, 0.7, 0.86]}))
    assert (finding.kind, finding.severity) == ("seed-decides", "warning")
    assert finding.evidence["share of seeds"] == 0.5
    assert finding.evidence["difference"] == pytest.approx(0.02)
    assert finding.remedy.command == "attnlab study run colours --seeds 8"
    assert finding.curve is not None
    assert finding.curve.lines["blue"] == [0.7, 0.86, 0.7, 0.86]
    single = only(study({"red": [0.9], "blue": [0.8]}))
    assert single.text == "red is better than blue with one seed"


def rates(best: float) -> StudyResult:
    specs: dict[str, Any] = {
        f"rate {rate}": {"training": {"lr": rate}, "task": {"digits": 2}} for rate in (0.01, 0.03, 0.1)
    }
    values = {name: [0.9 - abs(spec["training"]["lr"] - best)] * 3 for name, spec in specs.items()}
    return study(values, specs)


def test_the_best_of_the_values_that_were_tried_should_not_be_the_last() -> None:
    finding = only(rates(0.1))
    assert (finding.kind, finding.evidence) == ("optimum-at-edge", {"training.lr": 0.1})
    assert finding.text == "training.lr is best at 0.1, the highest value that was tried"
    assert finding.curve is not None
    assert finding.curve.x == [0.01, 0.03, 0.1]
    assert "lowest" in only(rates(0.01)).text
    assert al.diagnose(rates(0.03)).kinds == []


def test_ranking_by_test_examples_is_noted() -> None:
    values = {"red": [0.9, 0.91], "blue": [0.8, 0.79], "green": [0.7, 0.71]}
    named = {"measures": [{**MEASURE, "name": "test accuracy"}]}
    whole = study(values)
    found = StudyResult.from_json(
        {
            **whole.to_json(),
            **named,
            "variants": [
                {**each, "measures": {"test accuracy": each["measures"]["accuracy"]}}
                for each in whole.to_json()["variants"]
            ],
        }
    )
    finding = only(found)
    assert (finding.kind, finding.severity) == ("test-used-to-choose", "note")
    assert finding.evidence["variants"] == 3


def sweep(edges: list[str]) -> SweepResult:
    trials = [
        {
            **{"number": n, "state": "finished", "value": n / 10, "parameters": {"training.lr": 10.0**-n}},
            **{"run": "r", "error": None, "epochs": 1, "stability": None, "steps_to_converge": None},
            "parameter_count": 7,
        }
        for n in range(1, 4)
    ]
    return SweepResult.from_json(
        {
            **{"format": 1, "sweep": "small", "command": "none", "environment": BLANK["environment"]},
            **{"method": "random", "metric": {"name": "valid_loss", "goal": "minimize"}},
            **{"searched": {"training.lr": "log"}, "ended": "", "ranking": [1, 2, 3], "best": trials[0]},
            **{"edges": edges, "importance": {}, "trials": trials, "skipped": [], "timings": {}},
        }
    )


def test_a_sweep_whose_optimum_is_at_the_edge_is_found(tmp_path: Path) -> None:
    edge = "training.lr is best at 0.1, the upper edge of log: the optimum may lie above"
    found = al.diagnose(sweep([edge]))
    assert found.kinds == ["optimum-at-edge", "seed-decides"]
    assert found.findings[0].text == edge
    assert found.findings[0].evidence == {"best training.lr": 0.1}
    assert found.findings[1].severity == "note"
    assert al.diagnose(sweep([])).kinds == ["seed-decides"]
    write_json(tmp_path / "trials.json", sweep([edge]).to_json())
    assert al.diagnose(tmp_path).kinds == al.diagnose(tmp_path / "trials.json").kinds == found.kinds


def test_a_study_is_found_in_its_folder(tmp_path: Path) -> None:
    write_json(tmp_path / "study.json", rates(0.1).to_json())
    assert al.diagnose(tmp_path).kinds == al.diagnose(tmp_path / "study.json").kinds == ["optimum-at-edge"]


def test_damaged_results_say_so(tmp_path: Path) -> None:
    (tmp_path / "trials.json").write_text("[]")
    with pytest.raises(LabError, match="is damaged: it holds no sweep"):
        al.diagnose(tmp_path)


def test_a_run_whose_test_examples_choose_its_weights_is_found(tmp_path: Path) -> None:
    patient = Patient("run", run=run_with_log(tmp_path / "run", loss=learning(8)))
    found = diagnose(patient, faults=searching.FAULTS)
    assert found.kinds == []
    assert {each.outcome for each in found.checks} == {"clear", "inapplicable"}
    other = Patient("run", run=run_with_log(tmp_path / "other", loss=learning(8)))
    splits = other.splits
    other._made["splits"] = Splits(splits.train, splits.test, splits.test)
    (finding,) = diagnose(other, faults=searching.FAULTS).findings
    assert (finding.kind, finding.severity) == ("test-used-to-choose", "serious")
    assert finding.evidence == {"share of test examples": 1.0}
