"""Every kind of fault is explained, and its example shows what it says."""

import ast
import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import torch

from attnlab.doctor import explained
from attnlab.doctor.explanations import explanation_of
from attnlab.doctor.faults import FAULTS

KINDS = [each.kind for each in FAULTS]
LINES = 12
"""Of code, at most, without imports."""


def test_every_kind_has_an_explanation_and_every_explanation_a_kind() -> None:
    names = {path.stem for path in Path(explained.__path__[0]).glob("*.py")} - {"__init__"}
    assert names == {kind.replace("-", "_") for kind in KINDS}
    assert explanation_of("none-such") is None


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_shows_its_fault(kind: str) -> None:
    """It asserts the effect itself, and prints what a reader should see."""
    found = explanation_of(kind)
    assert found is not None
    shown, state = io.StringIO(), torch.get_rng_state()
    with redirect_stdout(shown):
        exec(compile(found.code, kind, "exec"), {})
    torch.set_rng_state(state)
    assert shown.getvalue().strip()
    assert "\nassert " in found.code


@pytest.mark.parametrize("kind", KINDS)
def test_an_explanation_is_short(kind: str) -> None:
    found = explanation_of(kind)
    assert found is not None
    assert 80 < len(found.text) < 400
    assert found.text.endswith(".")
    body = [
        each for each in ast.parse(found.code).body if not isinstance(each, ast.Import | ast.ImportFrom)
    ]
    assert sum((each.end_lineno or 0) - each.lineno + 1 for each in body) <= LINES


def test_text_paper_and_code_are_told_apart() -> None:
    found = explanation_of("pooling-dilutes")
    assert found is not None
    assert found.text.startswith("In a mean over n tokens one token counts 1/n, so the longer the input,")
    assert found.paper.startswith("Hahn, ")
    assert found.code.startswith("import torch\n")
    assert "Paper" not in found.text
