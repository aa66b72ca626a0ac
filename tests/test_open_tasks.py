"""Tasks in a file of one's own: trained, resumed, asked and studied like the built-in ones."""

import json
import re
import shutil
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from attnlab import registry
from attnlab.errors import RunError, SpecError
from attnlab.presets import preset
from attnlab.registry import ChangedTaskWarning, find_task
from attnlab.runs import create_run, open_run
from attnlab.specs import Spec, with_settings
from attnlab.training import train_run
from commands import attnlab, complaint

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = ["--train=600", "--valid=50", "--test=60", "--model.width=24", "--model.heads=3"]
QUICK = [*SMALL, "--model.hidden=48", "--training.batch=32", "--training.epochs=12", "--training.threads=1"]
SHORT = {"training.epochs": 2, "training.threads": 1, "task.train": 200, "task.valid": 20, "task.test": 20}


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("_tasks", "_sources"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    monkeypatch.setattr(registry, "_trust", [False])
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "named"))  # commands have another one


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained run of each example, and the examples."""
    folder = tmp_path_factory.mktemp("home")
    shutil.copytree(EXAMPLES, folder / "examples")
    snapshots = ["--training.snapshots", "3"]
    attnlab("train", "examples/reverse.py", "--length", "3", *QUICK, *snapshots, cwd=folder)
    attnlab("train", "examples/brackets.py", "--pairs=6", *QUICK, *snapshots, cwd=folder)
    return folder


REVERSE, BRACKETS = "runs/reverse-default-s0", "runs/brackets-default-s0"


def told(*words: str, cwd: Path) -> dict[str, object]:
    found = json.loads(attnlab(*words, "--json", cwd=cwd).stdout)
    assert isinstance(found, dict)
    return found


def test_the_run_keeps_the_file_and_names_it(home: Path) -> None:
    spec = json.loads((home / REVERSE / "spec.json").read_text())
    assert (home / REVERSE / "task.py").read_text() == (EXAMPLES / "reverse.py").read_text()
    assert spec["source"] == find_source("reverse.py")
    assert spec["task"] == {"kind": "reverse", "train": 600, "valid": 50, "test": 60, "length": 3}


def find_source(name: str) -> str:
    source = registry.Source(name, (EXAMPLES / name).read_text())
    return source.sha256


def test_patching_between_inputs_that_differ_in_one_symbol(home: Path) -> None:
    found = json.loads(attnlab("patch", REVERSE, "--pairs=3", "--json", cwd=home).stdout)
    assert list(found) == ["run", "columns", "carriers"]
    (contrast,) = found["columns"]
    assert (contrast["name"], contrast["column"]) == ("one symbol", 1)
    assert contrast["pairs"] == contrast["held_out"] <= 3
    base, donor = contrast["example"].values()
    assert sum(a != b for a, b in zip(base, donor, strict=True)) == 1
    assert contrast["difference"]["base"] < 0 < contrast["difference"]["donor"]
    last = [grid for grid in contrast["denoising"] if grid["quantity"] == "residual stream"][-1]
    assert max(last["share"][-1]) <= 1.001
    assert (home / REVERSE / "analysis/patch.json").exists()
    assert len(list((home / REVERSE / "figures").glob("patch-1-*.svg"))) == 3
    assert complaint("patch", BRACKETS, cwd=home) == (  # as many open as are closed
        "of 656 drawn inputs of 'brackets' no two differ in one symbol and have different answers; a task "
        "that is a class can make such pairs: write its `contrasts`"
    )


def test_comparing_two_runs(home: Path) -> None:
    attnlab("train", "examples/reverse.py", "--length=3", *QUICK, "--seed=1", "--out=other", cwd=home)
    found = told("compare", REVERSE, "other", cwd=home)
    mine, other = (open_run(str(home / name)).spec() for name in (REVERSE, "other"))
    test, theirs = mine.task.splits(0).test, other.task.splits(1)
    known = {tuple(row) for part in (theirs.train, theirs.valid) for row in part.inputs[0].tolist()}
    unknown = sum(tuple(row) not in known for row in test.inputs[0].tolist())
    assert 0 < unknown < 60
    assert found["answers"]["whole"]["examples"] == unknown  # type: ignore[index]
    longer = ["--length=4", "--training.steps=1", "--out=long"]
    attnlab("train", "examples/reverse.py", *QUICK, *longer, cwd=home)
    said = attnlab("compare", REVERSE, "long", cwd=home)
    assert "task.length is 3 in one and 4 in the other" in said.stdout + said.stderr


def test_fields_are_flags_with_and_without_their_group(home: Path) -> None:
    text = attnlab("train", "examples/brackets.py", "--help", cwd=home).stdout
    assert "--task.pairs" in text
    assert "usage: attnlab train examples/brackets.py" in text
    refused = complaint("train", "examples/brackets.py", "--pairs", "many", cwd=home)
    assert "many" in refused


@pytest.mark.parametrize(
    ("text", "word", "complains"),
    [
        (None, "nowhere.py", "there is no file nowhere.py to take a task from"),
        ("x = 1", "t.py", "t.py defines no task; decorate a function with @attnlab.task"),
        ("1 / 0", "t.py", "t.py cannot be run (ZeroDivisionError: division by zero)"),
        ("def", "t.py", "t.py cannot be run (SyntaxError: "),
        ("import sys; sys.exit()", "t.py", "t.py cannot be run (SystemExit: "),
        ("TWO", "t.py", "t.py defines one, two; choose one, as in t.py:one"),
        ("TWO", "t.py:tow", "t.py defines no task 'tow'; did you mean 'two'?"),
        ("import attnlab\nattnlab.task(symbols='0')", "t.py", "t.py: @task needs answer="),
    ],
)
def test_files_that_give_no_task(text: str | None, word: str, complains: str, tmp_path: Path) -> None:
    two = "".join(
        f"@attnlab.task(symbols='01', answer='sequence')\ndef {name}(rng):\n    return '0', '1'\n"
        for name in ("one", "two")
    )
    if text is not None:
        (tmp_path / "t.py").write_text(text.replace("TWO", f"import attnlab\n{two}"))
    assert complaint("train", word, cwd=tmp_path).startswith(complains)


def test_a_file_cannot_take_the_name_of_an_installed_task(tmp_path: Path) -> None:
    text = (EXAMPLES / "reverse.py").read_text().replace("def reverse(", "def addition(")
    (tmp_path / "t.py").write_text(text)
    with pytest.raises(SpecError, match="'addition' is the name of a task of an installed package"):
        find_task(str(tmp_path / "t.py"))


def test_a_sweep_file_does_not_run_code(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("raise SystemExit('ran')")
    short = (EXAMPLES.parent / "sweeps/addition-short.yaml").read_text()
    (tmp_path / "s.yaml").write_text(re.sub("^task: .*$", "task: t.py", short, flags=re.MULTILINE))
    refused = complaint("sweep", "s.yaml", cwd=tmp_path)
    assert "names the task file t.py, whose code would be run; if you know it, give it as task" in refused


def test_an_entry_point_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "no_such_package:Task", registry.GROUP)
    offered = registry._offered()
    monkeypatch.setattr(registry, "_offered", lambda: {**offered, "broken": broken})
    assert open_run("zoo:adder").spec().task.kind == "addition"  # others work on
    with pytest.raises(SpecError, match="the task 'broken' of no_such_package:Task cannot be imported"):
        find_task("broken")


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    for length in (3, 4):
        text = (EXAMPLES / "reverse.py").read_text()
        file.write_text(text.replace("length: int = 6", f"length: int = {length}"))
        assert find_task(str(file))().input_length == length


def test_the_spec_of_a_run_trains_it_again(home: Path) -> None:
    attnlab("train", "--spec", f"{REVERSE}/spec.json", "--training.steps=1", "--out=again", cwd=home)
    assert (home / "again/task.py").read_text() == (home / REVERSE / "task.py").read_text()


def test_a_spec_without_a_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"seed": 1}')
    assert complaint("train", "--spec", "s.json", cwd=tmp_path) == "spec has no 'task', which it needs"


def test_one_task_of_several(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\nimport attnlab, torch\n"
        "from attnlab.sets import Examples, Splits\n"
        "@attnlab.task(symbols='01', answer='sequence')\ndef first(rng):\n    return '0', '1'\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Second(attnlab.Task):\n"
        "    kind: ClassVar[str] = 'second'\n    vocabulary: ClassVar[int] = 2\n"
        "    def splits(self, seed):\n        x = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])\n"
        "        rows = Examples((x,), x[:, 0])\n        return Splits(rows[:2], rows[2:3], rows[3:])\n"
        "    def answer(self, tokens):\n        return 'ab'[int(tokens)]\n"
    )
    assert find_task(f"{tmp_path}/t.py:first").kind == "first"
    assert find_task(f"{tmp_path}/t.py:Second").kind == "second"
    assert preset(f"{tmp_path}/t.py:second", "default").task.vocabulary == 2


def test_a_file_with_several_tasks_opens_the_run_of_one(tmp_path: Path) -> None:
    text = (EXAMPLES / "reverse.py").read_text()
    (tmp_path / "t.py").write_text(text + text[text.index("@task") :].replace("reverse(", "again("))
    words = ["--training.steps=1", "--train=50", "--valid=9", "--test=9", "--out=made"]
    attnlab("train", "t.py:again", *words, "--training.threads=1", cwd=tmp_path)
    shutil.rmtree(tmp_path / "cache")
    found = json.loads(attnlab("evaluate", "made", "--tasks", "t.py", "--json", cwd=tmp_path).stdout)
    assert (found["run"], found["examples"]) == ("made", 9)


def short_run(tmp_path: Path) -> Spec:
    shutil.copy(EXAMPLES / "reverse.py", tmp_path / "mine.py")
    return with_settings(preset(str(tmp_path / "mine.py"), "default"), {**SHORT, "model.width": 16})


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_tasks", "_sources"):
        monkeypatch.setattr(registry, name, {})


def test_code_of_strangers_is_not_run_by_surprise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create_run(tmp_path / "made", short_run(tmp_path))
    train_run(made)
    forget(monkeypatch)
    assert open_run(str(made.path)).spec().task.kind == "reverse"  # whoever named the file trusts its bytes
    forget(monkeypatch)
    refused = complaint("evaluate", "made", cwd=tmp_path)
    assert refused == (
        "run made has a task of its own, 'reverse', whose code in made/task.py would be run; if you know "
        "that file, name it (tasks), or allow the code of all runs (trust)"
    )
    assert registry._tasks == {}
    attnlab("evaluate", "made", "--tasks", "mine.py", cwd=tmp_path)
    forget(monkeypatch)
    shutil.rmtree(tmp_path / "cache")
    attnlab("evaluate", "made", "--trust", cwd=tmp_path)


def test_a_changed_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create_run(tmp_path / "made", short_run(tmp_path))
    forget(monkeypatch)
    file = tmp_path / "mine.py"
    file.write_text(file.read_text() + "\n# another version\n")
    find_task(str(file))
    with pytest.warns(ChangedTaskWarning, match="is not the one that run .*made was trained with"):
        made.spec()


@pytest.mark.parametrize("change", ["# more", None])
def test_a_damaged_copy_is_refused(
    change: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create_run(tmp_path / "made", short_run(tmp_path))
    forget(monkeypatch)
    code = made.file("task.py")
    code.write_text(code.read_text() + change) if change else code.unlink()
    with pytest.raises(RunError, match=r"is damaged: task\.py (is not the file|cannot be read)"):
        made.spec()


def test_a_spec_of_another_file_makes_no_run(tmp_path: Path) -> None:
    spec = short_run(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(file.read_text() + "\n# another version\n")
    find_task(str(file))
    with pytest.raises(RunError, match="the file of the task 'reverse' is not the one that the spec names"):
        create_run(tmp_path / "made", spec)


def test_stopped_and_resumed_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    spec = short_run(tmp_path)
    whole, pieces = create_run(tmp_path / "whole", spec), create_run(tmp_path / "pieces", spec)
    train_run(whole)
    left = iter([False] * 3 + [True] + [False] * 99)
    assert train_run(pieces, stopping=lambda: next(left)) is None
    train_run(pieces)
    for name in ("best.safetensors", "last.safetensors"):
        assert pieces.file(name).read_bytes() == whole.file(name).read_bytes()
