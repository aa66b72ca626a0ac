"""The limits that ``docs/reference/limits.md`` states are those that the code keeps."""

import importlib
import re
from pathlib import Path

import pytest

ROWS = re.findall(
    r"^\| ([^|]+) \| ([0-9,]+) \| `([\w.]+)\.(\w+)` \|$",
    (Path(__file__).parent.parent / "docs/reference/limits.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("what", "most", "module", "name"), ROWS)
def test_a_limit_is_the_one_that_is_kept(what: str, most: str, module: str, name: str) -> None:
    assert f"{getattr(importlib.import_module(module), name):,}" == most


def test_all_rows_are_read() -> None:
    assert len(ROWS) == 26
