"""Commands hold words, flags and names of files; what computes lies below them."""

import ast
from collections.abc import Iterator

import pytest

from test_imports import SOURCE, imports, read_package, room

SLOW = ("matplotlib", "numpy", "pandas", "scipy", "torch")
BELOW = (
    "analysis",
    "data",
    "doctor",
    "export",
    "figures",
    "foreign",
    "models",
    "problems",
    "report",
    "training",
)
"""Rooms of what computes and draws, which commands reach through ``front`` and ``tables``."""
LIGHT = {
    "attnlab.analysis.choices",
    "attnlab.analysis.position_kinds",
    "attnlab.analysis",  # percent
    "attnlab.data.choices",
    "attnlab.problems.addition.task",
    "attnlab.problems.sorting.words",
    "attnlab.training.trackers",
}
"""Choices, defaults and refusals, which compute nothing."""
KNOWN = {
    ("data", "attnlab.data.mnist"): "the call itself: no run is asked",
    ("data", "attnlab.data.mnist_files"): "a type",
    ("data", "attnlab.data.mnist_sources"): "the call itself: no run is asked",
    ("drawing", "attnlab.figures.style"): "writes a figure to the file that is named",
    ("explain", "attnlab.analysis.explain.runs"): "the name of a file",
    ("predict_pictures", "attnlab.analysis.given_images"): "standard input as a picture",
    ("predict_pictures", "attnlab.analysis.samples"): "types",
    ("predict_pictures", "attnlab.data.pictures"): "how large standard input may be",
    ("predict_pictures", "attnlab.figures.braille"): "pictures in a terminal",
    ("project", "attnlab.analysis.project.points"): "refuses the tap of a second run before the first",
    ("project", "attnlab.analysis.project.projection"): "the name of a file",
    ("project", "attnlab.report.live"): "the page that is written",
    ("report", "attnlab.report.study_report"): "the call itself: a study is no run",
    ("show", "attnlab.figures.braille"): "pictures in a terminal",
    ("timelapse", "attnlab.analysis.timelapse.runs"): "the name of a file",
    ("timelapse", "attnlab.report.live"): "the page that is written",
}
"""What commands take from these rooms all the same."""


def reached(sources: dict[str, str]) -> set[tuple[str, str]]:
    """Commands with the modules of ``BELOW`` that they import."""
    return {
        (a.rpartition(".")[2], b)
        for a, b, _ in imports(sources)
        if room(a) == "cli" and room(b) in BELOW and b not in LIGHT
    }


def slow_imports(sources: dict[str, str]) -> Iterator[str]:
    """Commands that import what computes, other than for types."""
    for name, text in sources.items():
        tree = ast.parse(text)
        blocks = [node for node in tree.body if isinstance(node, ast.If)]
        for_types = {inner for block in blocks for inner in ast.walk(block)}
        for node in ast.walk(tree):
            if room(name) == "cli" and node not in for_types:
                named = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                yield from (f"{name}: {each}" for each in named if each.partition(".")[0] in SLOW)


def test_commands_reach_what_computes_through_the_front() -> None:
    assert reached(read_package(SOURCE)) == set(KNOWN)


def test_commands_compute_nothing() -> None:
    assert list(slow_imports(read_package(SOURCE))) == []


@pytest.mark.parametrize("line", ["import torch", "def f():\n    from numpy import ndarray"])
def test_the_checker_finds_what_computes(line: str) -> None:
    assert len(list(slow_imports({"attnlab.cli.heads": line, "attnlab.analysis.heads": line}))) == 1
    hidden = f"if TYPE_CHECKING:\n    {line}".replace("\n    from", "\n        from")
    assert list(slow_imports({"attnlab.cli.heads": hidden})) == []


def test_the_checker_finds_a_command_that_goes_around_the_front() -> None:
    sources = {
        "attnlab.cli.heads": "def f():\n    from attnlab.analysis import heads",
        "attnlab.analysis": "",
        "attnlab.analysis.heads": "",
    }
    assert reached(sources) == {("heads", "attnlab.analysis.heads")}
