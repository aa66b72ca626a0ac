"""The tutorials run from start to end, and show what they are kept with."""

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from run_tutorials import TUTORIALS, executed

from planted import planted_run

LARGEST = 400_000
"""Bytes that a notebook may have."""

WHOLE = ("1-train-an-adder", "5-your-own-task-and-model")
SMALLER = {
    "2-which-heads-matter": {
        "zoo:adder": "adder",
        '"374+814", "999+1"': '"37+81", "99+1"',
        "shapley=10, examples=400": "shapley=2, examples=37",
    },
    "3-why-a-model-stays-at-38": {
        "train=4_500": "train=300",
        "epochs=40": "epochs=2",
        ".run()": ".run(workers=1)",
    },
    "4-lengths-never-seen": {
        "train=6_400, epochs=10": "train=640, epochs=1",
        "examples=500": "examples=20",
        "examples=200": "examples=20",
    },
}
"""What takes minutes is cut short, or asked of an adder with weights written by hand (``planted.py``), so
what such a tutorial claims is checked by ``docs/run_tutorials.py`` alone.
"""

pytestmark = pytest.mark.slow

every_notebook = pytest.mark.parametrize("stem", [*WHOLE, *SMALLER])


def kinds(notebook: NotebookNode, *, printed: bool) -> list[list[tuple[str, ...]]]:
    """For each cell the kinds of what it shows; what is printed may come in several parts."""
    outputs = [cell.get("outputs", []) for cell in notebook.cells]
    shown = [[each for each in cell if printed or "data" in each] for cell in outputs]
    return [sorted({tuple(sorted(each.get("data", {"printed": ""}))) for each in cell}) for cell in shown]


def shortened(notebook: NotebookNode, changes: dict[str, str]) -> NotebookNode:
    """The notebook with smaller trainings and analyses, which need not bear out what it claims."""
    made: NotebookNode = nbformat.from_dict(notebook)  # type: ignore[no-untyped-call]
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    for old, new in changes.items():
        assert any(old in cell.source for cell in code), old
        for cell in code:
            cell.source = cell.source.replace(old, new)
    for cell in code:
        cell.source = "\n".join(line for line in cell.source.split("\n") if not line.startswith("assert "))
    return made


def test_every_tutorial_is_run() -> None:
    assert {path.stem for path in TUTORIALS.glob("*.ipynb")} == {*WHOLE, *SMALLER}


@every_notebook
def test_a_tutorial_shows_the_same_again(stem: str, tmp_path: Path) -> None:
    path: Path = TUTORIALS / f"{stem}.ipynb"
    kept: NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert path.stat().st_size < LARGEST
    planted_run(tmp_path / "adder", carries=True)
    new = executed(shortened(kept, SMALLER[stem]) if stem in SMALLER else kept, tmp_path)
    whole = stem in WHOLE
    assert kinds(new, printed=whole) == kinds(kept, printed=whole)
