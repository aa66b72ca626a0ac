"""Training and asking models that tell sorted lists, as users do."""

import json
from pathlib import Path

import pytest

from commands import attnlab, complaint

TINY = [
    "--task.train=96",
    "--task.valid=40",
    "--task.test=61",
    "--task.high=10",
    "--model.width=8",
    "--model.heads=2",
    "--model.layers=1",
    "--model.hidden=9",
    "--training.batch=32",
    "--training.epochs=3",
    "--training.threads=1",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of the default preset, only smaller, and one of the reference's."""
    home = tmp_path_factory.mktemp("sorting")
    attnlab("train", "sorting", *TINY, "--out", "run", cwd=home)
    words = ("--model.pooling", "cls", "--model.positions", "alibi", "--out", "reference")
    attnlab("train", "sorting", "--preset", "reference", *TINY, *words, cwd=home)
    return home


def test_the_spec_says_what_was_asked_for(home: Path) -> None:
    spec = json.loads((home / "run" / "spec.json").read_text())
    assert spec["task"]["kind"] == "sorting"
    assert spec["task"]["fresh"] is True
    assert spec["model"]["kind"] == "tokens"
    assert spec["model"]["pooling"] == "lowest"
    other = json.loads((home / "reference" / "spec.json").read_text())
    assert other["model"]["pooling"] == "cls"
    assert other["model"]["norm"] == "post"
    assert other["task"]["negatives"] == "reference"


def test_evaluate(home: Path) -> None:
    found = json.loads(attnlab("evaluate", "run", "--json", cwd=home).stdout)
    assert found["examples"] == 61
    assert [row["length"] for row in found["by_length"]] == [8, 9, 10]
    assert (
        "unsorted lists by reference; half of all lists are sorted"
        in attnlab("evaluate", "reference", cwd=home).stdout
    )


def test_lengths_as_table_json_and_figure(home: Path) -> None:
    words = ("--lengths", "8,16,...,64", "--negatives", "swap,reference", "--examples", "20")
    found = json.loads(attnlab("lengths", "run", *words, "--json", cwd=home).stdout)
    assert [(row["negatives"], row["length"]) for row in found["rows"]] == [
        (way, length) for way in ("swap", "reference") for length in (8, 16, 32, 64)
    ]
    for row in found["rows"]:
        low, high = row["accuracy_interval"]
        assert low <= row["accuracy"] <= high
        assert sum(row["answers"].values()) == 1
    drawn = {path.suffix for path in (home / "run" / "figures").glob("lengths.*")}
    assert drawn == {".svg", ".png", ".json"}
    table = attnlab("lengths", "reference", "--lengths", "9", "--negatives", "swap=.5,shuffle=.5", cwd=home)
    assert "unsorted lists by swap=.5,shuffle=.5" in table.stdout
    assert "trained" in table.stdout


def test_predict(home: Path) -> None:
    (found,) = json.loads(attnlab("predict", "run", "3 5 5 9 8", "--json", cwd=home).stdout)
    assert found["input"] == "3 5 5 9 8"
    assert found["truth"] == "unsorted"
    assert found["correct"] == (found["output"] == "unsorted")
    assert len(found["neighbours"]["places"]) == 2
    text = attnlab("predict", "run", "-", cwd=home, stdin="1 2\n" + "7 " * 16_384).stdout
    first, last = text.splitlines()
    assert first.startswith(("1 2 = sorted   (p = ", "1 2 = unsorted   (p = "))
    assert "places" in first
    assert len(last) < 250


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["predict", "run", ""], "the list is empty; write numbers such as 3 5 5 9 8"),
        (["predict", "run", "5"], "a list of length 1 is outside 2 to 16,384, the lengths of this task"),
        (["predict", "run", "5 100"], "100 is outside 0 to 99, the numbers of this task"),
        (["lengths", "run", "--lengths", "1"], "a list of length 1 is outside 2 to 16,384"),
        (["lengths", "run", "--lengths", "16385"], "a list of length 16,385 is outside 2 to 16,384"),
        (["lengths", "run", "--negatives", "swaps"], "unknown way 'swaps'; did you mean 'swap'?"),
        (["lengths", "zoo:adder"], "does the task 'addition', which has no 'lengths'; known: behaviour"),
        (
            ["verify", "run"],
            "verify decodes sums, but the task is 'sorting'",
        ),
        (["patch", "run", "--column", "1"], "contrasts of the task 'sorting' have no choice of 'column'"),
    ],
)
def test_one_sentence_each(home: Path, words: list[str], sentence: str) -> None:
    assert sentence in complaint(*words, cwd=home)


def test_too_long_a_list(home: Path) -> None:
    sentence = complaint("predict", "run", "-", cwd=home, stdin="7 " * 16_385)
    assert sentence == "a list of length 16,385 is outside 2 to 16,384, the lengths of this task"


def test_positions_that_cannot_reach_a_length(home: Path) -> None:
    words = ("--model.positions", "randomised:limit=16", "--training.epochs", "1", "--out", "near")
    attnlab("train", "sorting", *TINY, *words, cwd=home)
    assert "16" in complaint("lengths", "near", "--lengths", "8,17", cwd=home)
    assert "16" in complaint("predict", "near", "1 " * 17, cwd=home)


def test_report_before_and_after_lengths(home: Path) -> None:
    attnlab("report", "reference", "--out", "page.html", "--sections", "good", "maps", cwd=home)
    page = (home / "page.html").read_text()
    assert "A transformer that classifies whether a list is sorted" in page
    assert page.count("<svg") == 2
    attnlab("lengths", "reference", "--lengths", "8,77", "--examples", "10", cwd=home)
    attnlab("report", "reference", "--out", "page.html", "--sections", "good", "maps", cwd=home)
    assert "<td>77</td>" in (home / "page.html").read_text()


def test_heads_patterns_ablation_pruning(home: Path) -> None:
    found = json.loads(attnlab("heads", "reference", "--json", cwd=home).stdout)
    assert {"entropy", "diagonal", "previous", "next", "wrong_side"} <= found["metrics"].keys()
    for row in found["heads"]:
        assert 0 < row["metrics"]["wrong_side"]["uniform"] < row["metrics"]["entropy"]["uniform"] == 1
    lost = json.loads(attnlab("ablate", "run", "--json", cwd=home).stdout)
    assert {"sorted", "unsorted", "length 8", "length 9", "length 10"} == lost["strata"].keys()
    files = json.loads(attnlab("patterns", "reference", "--example", "3 1 2", "--json", cwd=home).stdout)
    drawn = json.loads((home / files["files"][2]).read_text())
    assert drawn["layers"][0]["keys"] == ["cls", "3", "1", "2"]
    for run in ("run", "reference"):
        attnlab("prune", run, "--keep", "1", "--out", f"{run}-pruned", cwd=home)
        kept = json.loads((home / f"{run}-pruned" / "analysis" / "prune.json").read_text())
        assert len(kept["kept"]) == 1
        assert kept["logit_difference"] < 1e-5
        attnlab("predict", f"{run}-pruned", "3 1 2", cwd=home)
    spec = json.loads((home / "reference-pruned" / "spec.json").read_text())
    assert len(spec["model"]["head_indices"]) == 1


def test_runs_are_listed(home: Path) -> None:
    rows = json.loads(attnlab("runs", ".", "--json", cwd=home).stdout)
    assert {"run", "reference"} <= {row["run"] for row in rows if row["task"] == "sorting"}
