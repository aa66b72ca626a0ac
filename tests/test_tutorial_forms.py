"""The tutorials are plain notebooks: other tools than Jupyter read, convert and run them."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbformat import NotebookNode
from run_tutorials import TUTORIALS

NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))
RUN_BY_MARIMO = "5-your-own-task-and-model"
"""Which is executed a second time, by marimo: it defines functions and classes."""
ALL_AT_ONCE = """
import json, runpy, sys
for sys.argv in json.load(sys.stdin):
    try:
        runpy.run_module("marimo", run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        if leaving.code:
            raise
"""

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def read(path: Path) -> NotebookNode:
    found: NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    return found


def code_of(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def cells_of(notebook: NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def defined(source: str) -> set[str]:
    """Names that a cell defines for others; those of functions, classes and comprehensions stay within."""
    found: set[str] = set()
    left: list[ast.AST] = [ast.parse(source)]
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        left += ast.iter_child_nodes(node)
    return {name for name in found if not name.startswith("_")}


def marimo(*commands: list[str | Path], folder: Path) -> None:
    """Commands of marimo, which ask and fetch nothing, in one process, since starting takes longest."""
    words = json.dumps([["marimo", "--yes", *map(str, command)] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", ALL_AT_ONCE],
        cwd=folder,
        input=words,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What marimo makes of each tutorial."""
    folder = tmp_path_factory.mktemp("scripts")
    found = {path.stem: folder / f"{path.stem.replace('-', '_')}.py" for path in NOTEBOOKS}
    convert: list[list[str | Path]] = [["convert", path, "-o", found[path.stem]] for path in NOTEBOOKS]
    marimo(*convert, ["check", "--strict", *found.values()], folder=folder)
    return found


def test_names_of_a_cell_are_those_that_others_see() -> None:
    imports = "import torch.nn.functional as F\nimport os.path\n"
    loop = "for _i, n in pairs:\n    a = [b for b in n]\n"
    assert defined(imports + loop + "def f(x):\n    y = x\nwith open(p) as file:\n    c, d = file\n") == {
        *("F", "os", "n", "a", "f", "file", "c", "d")
    }


def test_there_are_five_and_both_lists_name_them() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == ["1-", "2-", "3-", "4-", "5-"]
    readme = (TUTORIALS.parent.parent / "README.md").read_text(encoding="utf-8")
    own = (TUTORIALS / "README.md").read_text(encoding="utf-8").splitlines()
    for path in NOTEBOOKS:
        assert f"](docs/tutorials/{path.name})" in readme
        (line,) = [line for line in own if f"]({path.name})" in line]
        title = read(path).cells[0].source.partition("\n")[0].removeprefix("# ")
        number, _, words = title.partition(" ")
        assert line.startswith(f"{number} [{words}](")


@every_notebook
def test_a_tutorial_is_a_valid_notebook_for_every_front_end(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"(?:/home|/work|/tmp|/root|/Users|[A-Z]:\\\\)[/\w]", text) == []
    lines = [line for source in code_of(notebook) for line in source.split("\n")]
    assert [line for line in lines if line.startswith(("%", "!"))] == []  # nothing that only Jupyter knows


@every_notebook
def test_a_tutorial_says_how_to_install_and_imports_attnlab_first(path: Path) -> None:
    notebook = read(path)
    first = code_of(notebook)[0]
    assert first.startswith("#")
    assert 'pip install "./attnlab[notebook]"' in first
    imports = [line for source in code_of(notebook) for line in source.split("\n") if "import " in line]
    assert next(line.partition("  #")[0] for line in imports if line[0] != "#") == "import attnlab as al"


@every_notebook
def test_a_tutorial_defines_each_name_once(path: Path) -> None:
    """As marimo asks, and so that cells can be executed again in any order."""
    times = Counter(name for source in code_of(read(path)) for name in defined(source))
    assert [name for name, count in times.items() if count > 1] == []


@every_notebook
def test_jupytext_gives_back_the_same_cells(path: Path) -> None:
    notebook = read(path)
    script = jupytext.writes(notebook, fmt="py:percent")
    ast.parse(script)
    assert cells_of(jupytext.reads(script, fmt="py:percent")) == cells_of(notebook)


@pytest.mark.slow
def test_marimo_converts_the_tutorials_and_finds_no_fault(scripts: dict[str, Path]) -> None:
    for path in NOTEBOOKS:
        cells = scripts[path.stem].read_text(encoding="utf-8").count("@app.cell")
        assert cells >= len(read(path).cells) - 1  # imports may stand in a block of their own


@pytest.mark.slow
def test_the_script_that_marimo_makes_runs_to_its_end(scripts: dict[str, Path], tmp_path: Path) -> None:
    """With short trainings, which need not bear out what the tutorial claims."""
    script = scripts[RUN_BY_MARIMO].read_text(encoding="utf-8")
    short, trainings = re.subn(r"\bepochs=\d+", "epochs=1", script)
    assert trainings == 3
    short, claims = re.subn(r"^ *assert .*\n", "", short, flags=re.MULTILINE)
    assert claims == 6
    (tmp_path / "tutorial.py").write_text(short, encoding="utf-8")
    quiet = {**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "tutorial.py"],
        cwd=tmp_path,
        env=quiet,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert list((tmp_path / "runs").iterdir())
