"""Imports go one way, low to high, and never in a circle."""

import ast
from pathlib import Path

RANKS = (
    ("cores", "devices", "display", "errors", "lazy", "notation", "progress", "reading"),
    ("specs", "registry", "sets", "checks", "defaults", "taps", "storage", "results"),
    ("presets", "drawn", "drawn_images", "images", "pictures", "data", "positions", "pooling"),
    ("attention", "blocks", "model"),
    ("models", "explicit", "foreign"),
    ("runs",),
    ("training",),
    ("analysis", "export"),
    ("studies",),
    ("doctor",),
    ("figures", "tables"),
    ("report", "explorer", "widgets"),
    ("problems",),
    ("front",),
    ("course",),
    ("cli",),
    ("", "__main__"),  # the front door
)
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
SOURCE = Path(__file__).parents[1] / "src"


def read_package(folder: Path) -> dict[str, str]:
    """Source by module name; a package goes by the name of its folder."""
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): path.read_text()
        for path in sorted((folder / "attnlab").rglob("*.py"))
    }


def _for_types_only(tree: ast.Module) -> set[ast.AST]:
    """Everything under ``if TYPE_CHECKING:``."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    return {inner for block in blocks for statement in block.body for inner in ast.walk(statement)}


def _targets(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "Later":
        return [ast.literal_eval(node.args[0])]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def imports(sources: dict[str, str]) -> list[tuple[str, str, bool]]:
    """(importer, imported, only for types) of all modules of the package, lazy imports included, also those
    that a package lists for ``on_demand``; a module that comes ``Later`` counts as one for types.
    """
    found = []
    for name, text in sources.items():
        tree = ast.parse(text)
        for_types = set() if "on_demand(__name__)" in text else _for_types_only(tree)
        for node in ast.walk(tree):
            for target in _targets(node):
                while target and target not in sources:  # a name in a module: the module is meant
                    target = target.rpartition(".")[0]
                if target:
                    found.append((name, target, node in for_types or isinstance(node, ast.Call)))
    return found


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def unknown_rooms(sources: dict[str, str]) -> list[str]:
    return sorted({room(name) for name in sources} - RANK.keys())


def upward(sources: dict[str, str]) -> list[str]:
    return [f"{a} -> {b}" for a, b, _ in imports(sources) if RANK[room(a)] < RANK[room(b)]]


def cycle(sources: dict[str, str]) -> list[str]:
    """What remains when modules that import no other, or that no other imports, are taken away."""
    edges = {(a, b) for a, b, for_types in imports(sources) if not for_types}
    while True:
        between = {a for a, _ in edges} & {b for _, b in edges}
        kept = {(a, b) for a, b in edges if a in between and b in between}
        if kept == edges:
            return sorted(between)
        edges = kept


def test_every_room_has_a_rank() -> None:
    assert unknown_rooms(read_package(SOURCE)) == []


def test_no_import_goes_upward() -> None:
    assert upward(read_package(SOURCE)) == []


def test_no_imports_form_a_cycle() -> None:
    assert cycle(read_package(SOURCE)) == []


def test_the_source_is_found() -> None:
    found = imports(read_package(SOURCE))
    assert ("attnlab.blocks", "attnlab.attention", False) in found
    assert ("attnlab.training.events", "attnlab.training.trainer", True) in found


def test_checker_finds_a_planted_upward_import() -> None:
    fake = {"attnlab.taps": "def f():\n    from attnlab.models import build", "attnlab.models": ""}
    assert upward(fake) == ["attnlab.taps -> attnlab.models"]
    assert cycle(fake) == []


def test_checker_finds_an_upward_import_for_types() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import attnlab.cli"
    assert upward({"attnlab.taps": text, "attnlab.cli": ""}) == ["attnlab.taps -> attnlab.cli"]


def test_checker_finds_a_planted_cycle() -> None:
    fake = {
        "attnlab.specs": "from attnlab.specs.a import x",
        "attnlab.specs.a": "import attnlab.specs.b",
        "attnlab.specs.b": "from attnlab.specs import x",
        "attnlab.taps": "import torch",
        "attnlab.cli": "from attnlab.taps import x\nimport attnlab.specs",
    }
    assert cycle(fake) == ["attnlab.specs", "attnlab.specs.a", "attnlab.specs.b"]
    assert upward(fake) == []


def test_checker_lets_types_go_in_a_circle() -> None:
    text = "if TYPE_CHECKING:\n    from attnlab.specs.b import x"
    fake = {"attnlab.specs.a": text, "attnlab.specs.b": "import attnlab.specs.a"}
    assert cycle(fake) == []


def test_checker_finds_a_cycle_through_a_package_that_imports_on_demand() -> None:
    text = (
        "if TYPE_CHECKING:\n    from attnlab.specs.a import x\nelse:\n    __getattr__ = on_demand(__name__)"
    )
    fake = {"attnlab.specs": text, "attnlab.specs.a": "from attnlab.specs import y"}
    assert cycle(fake) == ["attnlab.specs", "attnlab.specs.a"]


def test_checker_finds_an_unknown_room() -> None:
    assert unknown_rooms({"attnlab": "", "attnlab.taps": "", "attnlab.utils.x": ""}) == ["utils"]
