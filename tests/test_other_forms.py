"""Studies' results, sweeps and ensembles of each form that was ever written are opened and go on."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from attnlab.errors import LabError
from attnlab.specs import Spec, from_json
from attnlab.studies import outcome
from attnlab.studies.outcome import read_results
from attnlab.studies.sweeps import search
from attnlab.studies.sweeps.file import read_sweep_file
from attnlab.studies.sweeps.outcome import collect_sweep
from attnlab.studies.sweeps.search import Sweep
from commands import attnlab
from test_ensembles import made

FORMS = Path(__file__).parent / "forms"


def test_there_is_a_form_of_this_version() -> None:
    written = {"study": ("study", outcome.FORMAT), "sweep": ("sweep", search.FORMAT)}
    for kind, (name, version) in written.items():
        data = json.loads((FORMS / f"{kind}-{version}/{name}.json").read_text())
        assert data["format"] == version
    trials = json.loads((FORMS / f"sweep-{search.FORMAT}/trials.json").read_text())
    assert trials["format"] == search.FORMAT


def test_the_result_of_a_study_is_read_and_shown(tmp_path: Path) -> None:
    """It is the first that was kept, without curves, heads and factors."""
    found = read_results(FORMS / "study-1")
    assert found is not None
    assert (found.study, found.complete, found.runs.finished) == ("addition-seeds", True, len(found.seeds))
    assert (found.curves, found.heads, found.factors) == (None, None, None)
    assert json.loads((FORMS / "study-1/study.json").read_text())["variants"][0]["runs"] == (
        found.variants[0].runs
    )
    said = attnlab("study", "show", "addition-seeds", "--out", FORMS / "study-1", cwd=tmp_path).stdout
    assert found.question in " ".join(said.split())


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    folder = tmp_path / "sweep"
    shutil.copytree(FORMS / "sweep-1", folder)
    (folder / "trials.db").write_bytes(gzip.decompress((folder / "trials.db.gz").read_bytes()))
    return folder


def test_a_sweep_is_opened_with_its_trials(sweep: Path) -> None:
    """Another search in its folder is refused."""
    file = read_sweep_file(sweep / "tiny.yaml")
    base = from_json(Spec, json.loads((sweep / "sweep.json").read_text())["base"])
    kept = json.loads((sweep / "trials.json").read_text())
    with Sweep(file, base, sweep, seed=3, count=2) as opened:
        found = collect_sweep(opened, sweep.parent / "pool", command="")
        assert [trial.run for trial in found.trials] == [trial["run"] for trial in kept["trials"]]
        assert [trial.value for trial in found.trials] == [trial["value"] for trial in kept["trials"]]
        assert opened.is_over()
        assert found.best is not None
        assert from_json(Spec, json.loads((sweep / "best.json").read_text())) == opened.spec_of(
            opened.trials()[found.best.number]
        )
    with pytest.raises(LabError, match="holds a sweep with another spec"):
        Sweep(file, base, sweep, seed=4, count=3)


def test_an_ensemble_answers(tmp_path: Path) -> None:
    shutil.copytree(FORMS / "ensemble-1", tmp_path / "both")
    for seed in range(2):
        made(tmp_path, f"r{seed}", seed)
    said = json.loads(attnlab("evaluate", "both", "--json", cwd=tmp_path).stdout)
    kept = json.loads((tmp_path / "both/ensemble.json").read_text())
    assert said["exact_match"] == pytest.approx(
        kept["test"]["exact_match"], abs=0.02
    )  # first weights round
