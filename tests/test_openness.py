"""Analyses ask the task and the model, never their class; what one problem has lies in ``problems``."""

import ast

import pytest

from test_imports import SOURCE, imports, read_package, room

ASKING = ("training", "runs", "analysis", "doctor", "figures", "report", "export", "studies", "cli")
"""Rooms that must serve any task and any model."""
SIDES = ("encoder", "decoder")


def concrete(sources: dict[str, str]) -> set[str]:
    """Names of the classes of single tasks, models and model specs."""
    places = ("attnlab.problems.", "attnlab.models.", "attnlab.specs.")
    found = set()
    for name, text in sources.items():
        if name.startswith(places):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef) and _is_one(name, node):
                    found.add(node.name)
    return found


def _is_one(module: str, node: ast.ClassDef) -> bool:
    if module.startswith("attnlab.specs."):
        return node.name.endswith("Model")
    if module.startswith("attnlab.models."):
        return "Model" in {ast.unparse(base) for base in node.bases}
    fields = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
    return "kind" in {ast.unparse(target) for target in fields}


def asked_classes(text: str, names: set[str]) -> list[str]:
    """Where a class among ``names`` is asked for: by ``isinstance``, by ``type(x) is`` or by ``match``."""
    found = []
    for node in ast.walk(ast.parse(text)):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked = [node.args[1]]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
            asked = list(node.comparators)
        named = (each for part in asked for each in ast.walk(part) if isinstance(each, ast.Name))
        found += [f"{each.lineno}: {each.id}" for each in named if each.id in names]
    return found


def asked_sides(text: str) -> list[str]:
    """Where the side of a model is read off a path."""
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "startswith"
        and any(f"{quote}{side}" in ast.unparse(node) for side in SIDES for quote in "'\"")
    ]


def test_nobody_asks_for_a_class() -> None:
    sources = read_package(SOURCE)
    names = concrete(sources)
    assert {"Addition", "Digits", "Classifier", "Seq2Seq", "VitModel", "CNN"} <= names
    found = {name: asked_classes(text, names) for name, text in sources.items() if room(name) in ASKING}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_nobody_reads_the_side_off_a_path() -> None:
    sources = read_package(SOURCE)
    found = {name: asked_sides(text) for name, text in sources.items() if room(name) in ASKING}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_only_commands_know_problems() -> None:
    known = {(a, b) for a, b, _ in imports(read_package(SOURCE)) if room(b) == "problems"}
    assert {a for a, _ in known if room(a) not in ("problems", "cli", "explorer", "")} == set()


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(task, Addition)",
        "isinstance(task, Digits | Addition)",
        "isinstance(task, (Digits, Addition))",
        "type(task) is Addition",
        "match task:\n    case Addition():\n        pass",
        "match task:\n    case Digits() | Addition(digits=3):\n        pass",
    ],
)
def test_the_checker_finds_a_class_that_is_asked_for(line: str) -> None:
    assert [each.partition(": ")[2] for each in asked_classes(line, {"Addition"})] == ["Addition"]


def test_the_checker_lets_other_classes_be_asked_for() -> None:
    assert asked_classes("isinstance(value, Tensor)\nAddition(digits=3)", {"Addition"}) == []


def test_the_checker_finds_a_side_that_is_read_off_a_path() -> None:
    assert len(asked_sides('path.startswith("encoder")\nname.startswith(("decoder.", "x"))')) == 2
    assert asked_sides('path.startswith("pool")') == []
