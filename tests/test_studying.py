"""Studies, sweeps and comparisons from Python."""

import json
from pathlib import Path
from typing import Any

import pytest

import attnlab as al
import tiny_studies
from attnlab.errors import LabError, RunError, SpecError
from attnlab.studies import EXACT_MATCH, Study
from attnlab.studies.outcome import StudyResult, read_results
from attnlab.studies.study import read_catalogue
from attnlab.studies.sweeps.parts import SweepResult
from tiny_jobs import AtOnce

ONE = al.spec(tiny_studies.TINY, epochs=1, heads=1, train=64, batch=32)
VARIANTS = {"1 head": ONE, "2 heads": al.spec(ONE, heads=2)}
SEARCH = {
    "set": {"digits": 2, "task.train": 64, "task.valid": 8, "task.test": 7, "width": 8, "epochs": 1},
    "search": {"heads": [1, 2], "lr": [0.1, 0.01]},
    "method": "grid",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def use(executor: AtOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("attnlab.studies.conduct", "attnlab.studies.sweeps.conduct"):
        monkeypatch.setattr(f"{module}.open_executor", lambda *_, **__: executor)


def test_variants_by_name_become_a_study() -> None:
    made = al.study(VARIANTS, seeds=3, baseline="1 head", measures=["valid_exact_match", EXACT_MATCH])
    assert (made.name, made.seed_list, made.baseline) == ("study", [0, 1, 2], "1 head")
    assert made.question == "How do 1 head and 2 heads compare?"
    assert [measure.name for measure in made.measures] == ["valid_exact_match", "exact_match"]
    assert "<td>2 heads</td><td>addition</td><td>seq2seq</td>" in made._repr_html_()
    assert made.command == ""  # no command knows it


def test_a_study_by_name_is_that_of_the_catalogue() -> None:
    known = read_catalogue()["addition-order"]
    assert al.study("addition-order") == known
    assert al.study("addition-order", seeds=2).seeds == 2
    assert al.study("tiny", catalogue=tiny_studies.__file__).variants == tiny_studies.STUDIES[0].variants
    assert known.command == f"attnlab study run addition-order --seeds {known.seeds}"


@pytest.mark.parametrize(
    ("given", "named", "text"),
    [
        (VARIANTS, {"measures": ["exact"]}, "there is no measure 'exact'; did you mean 'exact_match'"),
        (VARIANTS, {"baseline": "3 heads"}, "has no variant '3 heads' to compare with"),
        (VARIANTS, {"name": "My study"}, "study name 'My study' must be small letters"),
        (VARIANTS, {"seeds": 0}, "has 0 seeds, but it must have at least 1"),
        ({}, {}, "at least one variant"),
        ("addition-ordr", {}, "did you mean 'addition-order'"),
    ],
)
def test_a_study_that_cannot_be_is_one_sentence(given: Any, named: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError, match=text):
        al.study(given, **named)


def test_interrupted_it_returns_what_there_is_and_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = al.study(VARIANTS, seeds=2, name="heads")
    with pytest.raises(RunError, match="study heads has no result yet; run it first"):
        made.show()
    use(AtOnce(here / "runs/pool", stop_after=1), monkeypatch)
    part = made.run()
    assert (part.complete, part.runs.finished, part.runs.wanted) == (False, 1, 4)
    assert "Unfinished: 1 of 4 runs." in part._repr_html_()
    assert not (here / "results").exists()
    assert "stopped and saved, 1 of 4 runs finished\n" in capsys.readouterr().err
    assert made.show() == part
    executor = AtOnce(here / "runs/pool")
    use(executor, monkeypatch)
    whole = made.run()
    assert (whole.complete, len(executor.given)) == (True, 3)
    assert read_results(here / "results/heads") == whole == made.show()


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("studying"))
        use(AtOnce(Path("runs/pool")), patch)
        return al.study(VARIANTS, seeds=2, baseline="1 head").run(out="kept")


def test_a_frame_has_a_row_for_each_run(result: StudyResult) -> None:
    frame = result.frame()
    assert list(frame.columns) == ["variant", "seed", "run", "exact_match", "steps_to_99", "seconds"]
    assert frame[["variant", "seed"]].values.tolist() == [
        [variant, seed] for variant in VARIANTS for seed in (0, 1)
    ]
    for variant in result.variants:
        mine = frame[frame.variant == variant.name]
        assert mine.exact_match.tolist() == variant.measures["exact_match"].values
        assert mine.run.tolist() == variant.runs


def test_a_result_shows_and_saves_itself(result: StudyResult, tmp_path: Path) -> None:
    page = result._repr_html_()
    assert page.startswith("<p>study: How do 1 head and 2 heads compare?</p><table>")
    assert "paired differences from 1 head" in page
    assert [axes.get_title(loc="left") for axes in result.plot().axes] == [
        words.title for words in result.measures
    ]
    files = result.save(tmp_path / "again")
    assert [path.name for path in files] == ["study.json", "study.md", "study.svg"]
    assert all(path.exists() for path in files)
    assert StudyResult.from_json(json.loads(files[0].read_text())) == result


def test_a_sweep_is_searched_from_plain_values(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(AtOnce(here / "runs/pool", stop_after=2), monkeypatch)
    part = al.sweep(SEARCH)
    assert (part.complete, len(part.ranking)) == (False, 2)
    assert "The search was stopped before its end." in part.tables()
    assert not (here / "runs/sweeps/sweep/trials.json").exists()
    use(AtOnce(here / "runs/pool"), monkeypatch)
    found = al.sweep(SEARCH, retrain=1, retrain_seeds=2)
    assert (found.complete, found.command) == (True, "")
    frame = found.frame()
    assert {tuple(row) for row in frame[["model.heads", "training.lr"]].values.tolist()} == {
        (heads, rate) for heads in (1, 2) for rate in (0.1, 0.01)
    }
    assert frame.valid_exact_match.tolist() == [trial.value for trial in found.trials]
    kept = json.loads((here / "runs/sweeps/sweep/trials.json").read_text())
    assert SweepResult.from_json(kept).trials == found.trials
    assert kept["scales"] == {"model.heads": "linear", "training.lr": "linear"}
    assert found.retrained is not None
    assert found.retrained.seeds == [1, 2]
    assert found.retrained.study in found._repr_html_()
    assert {"history", "parallel", "importance"} == set(found.figures())
    assert found.plot("parallel").axes


def test_a_sweep_does_not_run_the_code_of_a_file_by_surprise(here: Path) -> None:
    with pytest.raises(SpecError, match=r"names the task file mine\.py, whose code would be run; if you"):
        al.sweep({**SEARCH, "task": "mine.py"})


def test_two_runs_are_compared_by_name_or_as_they_are(tmp_path: Path) -> None:
    adder = al.load("zoo:adder")
    found = al.compare(adder, "zoo:adder", samples=20, out=str(tmp_path / "both.html"))
    assert (tmp_path / "both.html").read_text().startswith("<!doctype html>")
    frame = found.frame()
    whole = found.answers.whole
    assert whole is not None
    assert frame.examples[0] == whole.examples == sum(frame.examples[1:])
    assert frame.difference.tolist() == [0.0] * len(frame)
    assert frame.difference_low[0] == whole.interval[0] == -whole.interval[1]
    assert "No difference is shown" in found._repr_html_()
    assert found.plot().axes
    with pytest.raises(al.InputError, match="samples is 0; it must be at least 1"):
        al.compare(adder, adder, samples=0)
    with pytest.raises(al.InputError, match=r"out is 'x\.svg'; it must end in \.html"):
        al.compare(adder, adder, out="x.svg")


def test_runs_of_different_tasks_are_not_compared() -> None:
    with pytest.raises(
        LabError, match="'addition', run zoo:sorter 'sorting'; compare two runs of the same task"
    ):
        al.compare("zoo:adder", "zoo:sorter", samples=20)


def test_a_result_without_a_figure_says_so() -> None:
    with pytest.raises(LabError, match=r"Prediction has no figure; frame\(\) and to_json\(\) have"):
        al.load("zoo:adder").predict("1+1").plot()


def test_every_built_in_study_shows_its_variants() -> None:
    for study in read_catalogue().values():
        assert isinstance(study, Study)
        assert study._repr_html_().count("<tr>") == len(study.variants) + 1
