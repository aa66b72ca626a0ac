"""Only commands that compute load torch: help, lists and refusals answer at once.

All calls run in one process of their own that refuses to import anything slow, whoever asks for it.
"""

import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from attnlab.cli.main import COMMANDS
from attnlab.runs import open_run
from commands import run

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "attnlab"
TASKS = ("addition", "digits", "grids", "sorting")
SLOW = ("captum", "matplotlib", "numba", "numpy", "optuna", "ray", "scipy", "sklearn", "torch")

CHILD = f"""
import contextlib, importlib, io, json, sys

asked = []

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {SLOW!r}:
            asked.append(name)
            raise ImportError(f"{{name}} is slow")

sys.meta_path.insert(0, Refuse())

def call(words):
    from attnlab.cli import main
    try:
        return main.run(words)
    except SystemExit as leaving:
        return leaving.code

answers = []
for words in json.load(sys.stdin):
    asked.clear()
    code, out, error = "raised", io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            code = call(words) if isinstance(words, list) else bool(importlib.import_module(words)) - 1
        except Exception as problem:
            print(repr(problem), file=error)
    answers.append([code, out.getvalue(), error.getvalue(), list(asked)])
print(json.dumps(answers))
"""


def ask(calls: list[Any], *, cwd: Path) -> list[Any]:
    """Code, output, complaint and slow modules of each call, which is words of a command or a module."""
    done = run([sys.executable, "-c", CHILD], cwd=cwd, stdin=json.dumps(calls))
    found: list[Any] = json.loads(done.stdout)
    return found


NO_RUN = {
    "compare": ["nowhere", "zoo:adder"],
    "ensemble": ["zoo:digit", "nowhere"],
    "explain": ["nowhere", "1+1"],
    "export": ["nowhere", "--onnx", "model.onnx"],
    "handout": ["nowhere", "--out", "page.html"],
    "positions": ["no/where"],
    "predict": ["nowhere", "1+1"],
}
"""What commands need besides a run, or in its place."""
RUNLESS = ("check", "data", "demo", "gradcheck", "runs", "study", "sweep", "train")


@dataclass(frozen=True)
class Call:
    """Words of a command, its exit code, and what is in its output."""

    words: list[str]
    code: int
    text: str


HELP = [
    Call(["--help"], 0, "usage: attnlab COMMAND ..."),
    *(Call([name, "--help"], 0, f"usage: attnlab {name}") for name in COMMANDS),
    *(Call(["train", task, "--help"], 0, f"usage: attnlab train {task}") for task in TASKS),
    Call(["train", "--resume", "zoo:adder", "--help"], 0, "usage: attnlab train --resume RUN"),
    Call(["sweep", "any.yaml", "--help"], 0, "usage: attnlab sweep"),
    Call(["data", "status", "--help"], 0, "usage: attnlab data status"),
    Call(["data", "fetch", "--help"], 0, "usage: attnlab data fetch"),
    Call(["study", "run", "any", "--help"], 0, "usage: attnlab study run"),
    Call(["study", "show", "any", "--help"], 0, "usage: attnlab study show"),
    Call(["study", "list", "--help"], 0, "usage: attnlab study list"),
]
LISTS = [
    Call(["--version"], 0, "attnlab "),
    Call(["runs"], 0, "copied"),
    Call(["runs", "--json"], 0, '"run": "copied"'),
    Call(["metrics", "zoo:adder"], 0, "valid_loss"),
    Call(["metrics", "runs/copied", "--csv"], 0, "epoch,loss,time"),
    Call(["data", "status", "--json"], 0, '"digits": 3'),
    Call(["study", "list"], 0, "addition-positions"),
    Call(["study", "list", "--json"], 0, '"study": "addition-positions"'),
    Call(["study", "show", "addition-positions"], 0, "paired differences from learned"),
    Call(["study", "show", "addition-positions", "--markdown"], 0, "| variant | mean |"),
]
REFUSALS = [
    *(
        Call([name, *NO_RUN.get(name, ["nowhere"])], 2, "'attnlab runs' lists")
        for name in COMMANDS
        if name not in RUNLESS
    ),
    Call(["check", "lesson7", "answers.py"], 2, "'lesson7' is not a lesson of the course"),
    Call(["check", "lesson1", "none.py"], 2, "there is no file 'none.py'"),
    Call(["evalute"], 2, "did you mean 'evaluate'?"),
    Call(["heads", "zoo:adder", "--split", "tset"], 2, "tset"),
    Call(["evaluate", "zoo:digit", "--views", "3"], 2, "views is 3; it must be 1, 5 or 9"),
    Call(["verify", "zoo:sorter"], 2, "verify decodes sums, but the task is 'sorting'"),
    Call(
        ["calibrate", "zoo:sorter"],
        2,
        "zoo:sorter is shipped and keeps its temperature, 1; give the folder",
    ),
    Call(["maps", "zoo:digit", "--out", "map.gif"], 2, "out is 'map.gif'"),
    Call(["demo", "--task.digits", "4"], 2, "the limit is 3 digits"),
    Call(["study", "show", "additon-order"], 2, "did you mean 'addition-order'?"),
    Call(["study", "run", "addition-order", "--workers", "0"], 2, "workers is 0"),
    Call(["sweep", "none.yaml"], 2, "none.yaml: there is no such file"),
    Call(["train", "adition"], 2, "did you mean 'addition'?"),
    Call(["train", "addition", "--preset", "best"], 2, "unknown preset 'best' of addition"),
    Call(["train", "addition", "--model.hedas", "8"], 2, "did you mean --model.heads?"),
    Call(["train", "addition", "--model.heads", "7"], 2, "it must be a divisor of model.width 128"),
    Call(["train", "addition", "--model.positions", "rotari"], 2, "did you mean 'rotary'?"),
    Call(["train", "addition", "--task.digits", "201"], 2, "it must be from 1 to 200"),
    Call(["train", "addition", "--training.epochs", "many"], 2, "it must be a whole number"),
    Call(["train", "addition", "--show", "2"], 2, "needs a task with images"),
    Call(["train", "addition", "--out", "runs/copied"], 2, "exists already and is not empty"),
    Call(["train", "--spec", "bad.json"], 2, "unknown key spec.model.hedas; did you mean 'heads'?"),
    Call(["train", "--resume"], 2, "--resume needs a value"),
    Call(["train", "--resume", "nowhere"], 2, "'attnlab runs' lists"),
    Call(["train", "--resume", "zoo:adder"], 0, "zoo:adder: 939,790 parameters"),
    Call(["train", "--resume", "runs/copied", "--checkpoint", "-1"], 2, "checkpoint is -1.0"),
]
CALLS = [*HELP, *LISTS, *REFUSALS]

QUICK = (
    *("attnlab", "attnlab.errors", "attnlab.lazy", "attnlab.notation", "attnlab.presets"),
    *("attnlab.specs", "attnlab.storage"),
    *("attnlab.analysis.choices", "attnlab.analysis.choices", "attnlab.analysis.statistics"),
    *("attnlab.registry", "attnlab.data.choices", "attnlab.data.mnist_sources"),
    *(f"attnlab.problems.{name}" for name in ("addition", "digits", "grids", "sorting")),
    *("attnlab.runs.environment", "attnlab.runs.folder"),
    *("attnlab.training.events", "attnlab.training.trackers"),
    *("attnlab.studies.study", "attnlab.studies.running", "attnlab.studies.jobs"),
    *("attnlab.studies.outcome", "attnlab.studies.running", "attnlab.studies.sweeps.file"),
    *("attnlab.studies.conduct", "attnlab.front.studying", "attnlab.tables.study"),
    *(f"attnlab.cli.{name}" for name in COMMANDS),
)
"""Modules that anybody may import without waiting."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, a study's result, a file of three labels in the cache and a bad spec."""
    folder = tmp_path_factory.mktemp("home")
    shutil.copytree(open_run("zoo:adder").path, folder / "runs/copied")
    shutil.copytree(ROOT / "results/addition-positions", folder / "results/addition-positions")
    (folder / "cache/mnist").mkdir(parents=True)
    (folder / "cache/mnist/t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x03\x07\x02\x01")
    (folder / "bad.json").write_text('{"model": {"kind": "seq2seq", "hedas": 8}}')
    return folder


@pytest.fixture(scope="module")
def answers(home: Path) -> dict[str, Any]:
    """What each call said."""
    found = ask([call.words for call in CALLS], cwd=home)
    return dict(zip((" ".join(call.words) for call in CALLS), found, strict=True))


@pytest.mark.parametrize("call", CALLS, ids=[" ".join(call.words) for call in CALLS])
def test_what_does_not_compute_loads_nothing_slow(call: Call, answers: dict[str, Any]) -> None:
    code, out, error, slow = answers[" ".join(call.words)]
    assert slow == []
    assert code == call.code, error
    assert call.text in " ".join((error if call.code else out).split())


def test_low_rooms_load_nothing_slow(tmp_path: Path) -> None:
    found = ask(list(QUICK), cwd=tmp_path)
    assert {name: answer[2:] for name, answer in zip(QUICK, found, strict=True)} == {
        name: ["", []] for name in QUICK
    }


def test_every_command_is_called() -> None:
    assert set(COMMANDS) - {call.words[0] for call in REFUSALS} == {"data", "gradcheck", "runs"}


def test_a_command_that_computes_is_found_out(tmp_path: Path) -> None:
    (answer,) = ask([["predict", "zoo:adder", "1+1"]], cwd=tmp_path)
    assert answer[0] == 70
    assert answer[3] == ["torch"]


def test_a_slow_import_below_is_found_out(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "attnlab", ignore=shutil.ignore_patterns("zoo", "sample", "*.pyc"))
    low = tmp_path / "attnlab/storage.py"
    low.write_text(f"import torch\n{low.read_text()}")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{CHILD}"
    done = run([sys.executable, "-c", code], cwd=tmp_path, stdin=json.dumps([["runs", "--help"]]))
    assert set(json.loads(done.stdout)[0][3]) == {"torch"}


HELP = [call for call in CALLS if call.words[-1] == "--help"]


def test_help_names_values_by_meaning_and_wraps(answers: dict[str, Any]) -> None:
    """No names of types, no empty defaults, no marks of code; only examples may be wider than that."""
    odd = re.compile(
        r"\b(STR|INT|FLOAT|SHA-256)\b|\{None\}|default: (''|None|False)?\)|``|--start\b|--source\b"
    )
    for call in HELP:
        _, out, _, _ = answers[" ".join(call.words)]
        assert odd.search(out) is None, (call.words, odd.findall(out))
        if "\n options\n" in out:
            plain = [line for line in out.splitlines() if not line.startswith(("Example:", "usage:"))]
            assert max(map(len, plain)) <= 80, call.words
    _, train, _, _ = answers["train addition --help"]
    assert {"--preset", "--spec", "--resume"} <= set(train.split())
