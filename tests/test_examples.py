"""The examples through every command: what has learned is right, and a planted head is found.

Sweeps and studies of one of them are in ``test_file_jobs.py``.
"""

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from attnlab.runs import open_run
from commands import apart, attnlab, command, environment
from planted_reverse import MIRROR, planted_reverse

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = ["--model.width=24", "--model.heads=3", "--model.hidden=48", "--training.threads=1"]
QUICK = [*SMALL, "--training.batch=32", "--training.perfect=0", "--training.snapshots", "3"]
SHAPES = {
    "reverse": ["--model.encoder_layers=1", "--model.decoder_layers=1", "--length=3", "--train=600"],
    "brackets": ["--model.layers=2", "--training.lr=5e-3", "--pairs=6", "--train=1500"],
}
SHORT = {"reverse": ["--training.epochs=12"], "brackets": ["--training.epochs=20"]}
GIVEN = {"reverse": "314", "brackets": "(()())"}
RIGHT = {"reverse": "413", "brackets": "yes"}
NAMES = list(SHAPES)


def training(name: str) -> list[str]:
    words = [*SHAPES[name], *SHORT[name], *QUICK]
    return ["train", f"examples/{name}.py", "--valid=50", "--test=100", *words]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained run of each example, the examples, and a planted run."""
    folder = tmp_path_factory.mktemp("home")
    shutil.copytree(EXAMPLES, folder / "examples")
    for name in NAMES:
        attnlab(*training(name), "--out", name, cwd=folder)
    planted_reverse(folder / "planted", folder / "examples/reverse.py")
    return folder


def told(*words: str, cwd: Path) -> Any:
    return json.loads(attnlab(*words, "--json", cwd=cwd).stdout)


def test_a_killed_training_ends_with_the_same_bytes(home: Path) -> None:
    folder = home / "killed"
    words = command(*training("reverse"), "--checkpoint=0.1", "--out", "killed")
    with subprocess.Popen(words, cwd=home, env=environment(home), stderr=subprocess.DEVNULL) as process:
        while not (folder / "state.safetensors").exists() and process.poll() is None:
            time.sleep(0.02)
        process.kill()
    assert not (folder / "summary.json").exists()
    attnlab("train", "--resume", "killed", cwd=home)
    for file in ("best.safetensors", "last.safetensors", "task.py"):
        assert (folder / file).read_bytes() == (home / "reverse" / file).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_what_was_learned_is_right(name: str, home: Path) -> None:
    found = told("evaluate", name, cwd=home)
    assert found["examples"] >= 30
    assert found["exact_match"] > 0.85
    (answer,) = told("predict", name, GIVEN[name], cwd=home)
    assert (answer["input"], answer["output"]) == (GIVEN[name], RIGHT[name])
    heading = {"reverse": "by place of the answer", "brackets": "by group"}[name]
    assert heading in attnlab("evaluate", name, cwd=home).stdout


@pytest.mark.parametrize("name", NAMES)
def test_where_heads_look(name: str, home: Path) -> None:
    found = told("heads", name, "--examples", "20", cwd=home)
    assert len(found["heads"]) == {"reverse": 9, "brackets": 6}[name]
    drawn = told("patterns", name, "--example", GIVEN[name], "--out", "figures", cwd=home)
    assert drawn["examples"] == [GIVEN[name]]
    assert all((home / file).stat().st_size > 0 for file in drawn["files"])
    assert attnlab("positions", name, cwd=home).stdout


@pytest.mark.parametrize("name", NAMES)
def test_what_is_lost_without_heads(name: str, home: Path) -> None:
    found = told("ablate", name, "--examples", "30", cwd=home)
    assert found["exact_match"] > 0.85
    assert ("yes" in found["strata"]) == (name == "brackets")
    pruned = told("prune", name, "--examples", "20", "--keep", "4", "--out", f"{name}-4", cwd=home)
    assert len(pruned["kept"]) == 4
    assert open_run(str(home / f"{name}-4")).spec().task == open_run(str(home / name)).spec().task


@pytest.mark.parametrize("name", NAMES)
def test_explanations_name_the_symbols(name: str, home: Path) -> None:
    found = told("explain", name, GIVEN[name], cwd=home)
    assert found["parts"] == list(GIVEN[name])
    places = {"reverse": ["1", "2", "3"], "brackets": ["class"]}[name]
    assert [place["place"] for place in found["places"]] == places


@pytest.mark.parametrize("name", NAMES)
def test_the_way_it_was_learned(name: str, home: Path) -> None:
    found = told("timelapse", name, "--examples", "20", cwd=home)
    assert found["steps"][:2] == [0, 1]
    assert found["accuracy"][-1] > 0.85 > found["accuracy"][0]
    assert attnlab("metrics", name, cwd=home).stdout


@pytest.mark.parametrize("name", NAMES)
def test_points_of_a_plane(name: str, home: Path) -> None:
    found = told("project", name, "--samples", "30", "--method", "pca-kmeans", cwd=home)
    assert [run["run"] for run in found["runs"]] == [name]
    assert all((home / file).stat().st_size > 0 for file in found["files"])


@pytest.mark.parametrize("name", NAMES)
def test_pages(name: str, home: Path) -> None:
    attnlab("report", name, "--out", f"{name}.html", "--samples", "20", cwd=home)
    page = (home / f"{name}.html").read_text()
    assert f"A transformer for the task {name}." in page
    about = {
        "reverse": "Saying a row of digits from its end",
        "brackets": "Whether every bracket that opens",
    }
    assert about[name] in page
    assert "What it gets wrong" in page


def test_graphs(home: Path) -> None:
    apart("export", "brackets", "--onnx", "brackets.onnx", cwd=home)
    assert (home / "brackets.onnx").stat().st_size > 1000


def test_comparing(home: Path) -> None:
    for name in NAMES:
        whole = told("compare", name, name, cwd=home)["answers"]["whole"]
        assert (whole["only_first"], whole["only_second"], whole["p"]) == (0, 0, 1)
    found = told("compare", "reverse", "planted", cwd=home)
    assert found["answers"]["whole"]["right"][1] == 1


def test_the_planted_head_is_found(home: Path) -> None:
    assert told("evaluate", "planted", cwd=home)["exact_match"] == 1
    (answer,) = told("predict", "planted", "271", cwd=home)
    assert answer["output"] == "172"
    lost = told("ablate", "planted", "--examples", "50", cwd=home)["baselines"]["optimal"]
    assert {
        row["head"]: row["lost"]["all examples"]["value"] for row in lost if row["exact_match"] < 1
    } == {MIRROR: 1.0}
    heads = told("heads", "planted", "--examples", "30", cwd=home)["heads"]
    sharp = {row["head"] for row in heads if row["metrics"]["sparsity"]["value"] > 0.5}
    assert sharp == {MIRROR}
    pruned = told("prune", "planted", "--examples", "30", "--keep", "1", "--out", "one", cwd=home)
    assert pruned["kept"] == [MIRROR]
    assert told("evaluate", "one", cwd=home)["exact_match"] == 1


def test_an_explanation_of_the_planted_head(home: Path) -> None:
    found = told("explain", "planted", "271", cwd=home)
    for read, place in zip((2, 1, 0), found["places"], strict=True):  # the digit that is copied
        for method in ("gradient x attention", "integrated gradients", "occlusion", "heads"):
            scores = place["scores"][method]
            assert [at for at, score in enumerate(scores) if abs(score) > 1e-6] == [read], method
        assert {head for head, share in place["heads"].items() if abs(share) > 1e-6} == {MIRROR}
