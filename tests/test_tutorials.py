"""The tutorials run from start to end, and show what they are kept with."""

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from run_tutorials import TUTORIALS, executed

NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))
LARGEST = 400_000
"""Bytes that a notebook may have."""

pytestmark = pytest.mark.slow


def kinds(notebook: NotebookNode) -> list[list[tuple[str, ...]]]:
    """For each cell the kinds of what it shows; what is printed may come in several parts."""
    return [
        sorted({tuple(sorted(each.get("data", {"printed": ""}))) for each in cell.get("outputs", [])})
        for cell in notebook.cells
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_tutorial_shows_the_same_again(path: Path) -> None:
    kept = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert path.stat().st_size < LARGEST
    assert kinds(executed(kept)) == kinds(kept)
