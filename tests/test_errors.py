"""User errors: their classes, what they offer instead of an unknown word, and that they name arguments."""

import ast
import re

import pytest

from attnlab.errors import InputError, LabError, RunError, SpecError, StorageError, nearest
from test_imports import SOURCE, read_package, room

FLAG = re.compile(r"(?<![\w-])--[a-z]")
OTHERS = "ray start --head"
"""A command of another program that an error names."""
COMMANDS = (
    "attnlab.report.",
    "attnlab.front.studying",
    "attnlab.studies.study",
    "attnlab.studies.sweeps.outcome",
    "attnlab.data.mnist_sources",
    "attnlab.runs.environment",
    "attnlab.training.trackers",
)
"""Modules that call other programs, or that say by which command a page or a result is made again."""


def flags(text: str, *, raised: bool) -> list[str]:
    """Strings that hold a command-line flag: those of a ``raise``, or all that are no documentation."""
    tree = ast.parse(text)
    documents = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    roots = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)] if raised else [tree]
    strings = [
        node.value
        for root in roots
        for node in ast.walk(root)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documents
    ]
    return [each for each in strings if FLAG.search(each.replace(OTHERS, ""))]


def test_errors_of_the_library_name_arguments_and_no_flags() -> None:
    spoken = ("cli", "course", "doctor")  # a remedy of the doctor is a command, so are hints of the course
    sources = {name: text for name, text in read_package(SOURCE).items() if room(name) not in spoken}
    found = {name: flags(text, raised=name.startswith(COMMANDS)) for name, text in sources.items()}
    assert {name: each for name, each in found.items() if each} == {}


def test_the_checker_finds_flags() -> None:
    text = '''
def check(samples, more):
    """What --samples says."""
    words = ["--out", "a--b", "--"]
    raise InputError(f"--samples is {samples}" if more else "start one with: ray start --head")
'''
    assert flags(text, raised=True) == ["--samples is "]
    assert flags(text, raised=False) == ["--out", "--samples is "]


def test_nearest_names_the_nearest() -> None:
    assert nearest("wdith", ["width", "heads"]) == "; did you mean 'width'?"


def test_nearest_lists_all_when_none_is_near() -> None:
    assert nearest("zzz", ["width", "heads"]) == "; known: heads, width"


def test_nearest_is_short_where_much_is_known() -> None:
    """What comes first, then what is most like the word; never more than a sentence holds."""
    known = ["read", *(f"encoder.{layer}.norm" for layer in range(60)), "source_embed", "target_embed"]
    assert nearest("embed", known, first=["read"], command="attnlab list") == (
        "; known: read, source_embed, target_embed, encoder.0.norm, encoder.1.norm, encoder.2.norm, "
        "encoder.3.norm, encoder.4.norm, and 55 more, all in 'attnlab list'"
    )
    assert nearest("zzz", "abcdefghi") == "; known: a, b, c, d, e, f, g, h, and 1 more"
    assert nearest("zzz", "abcdefgh") == "; known: a, b, c, d, e, f, g, h"


def test_nearest_of_nothing() -> None:
    assert nearest("x", []) == "; known: none"


@pytest.mark.parametrize("kind", [SpecError, InputError, RunError, StorageError])
def test_every_error_is_a_lab_error(kind: type[Exception]) -> None:
    assert issubclass(kind, LabError)
