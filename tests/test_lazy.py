"""Packages that import pkgutil
import importlib.util
import on demand: they offer what they list, no more and no less."""

import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path

import pytest

import attnlab
from attnlab import runs
from attnlab.lazy import Later, listed_names, on_demand

SOURCE = Path(attnlab.__file__).parent
LAZY = {
    ".".join(("attnlab", *path.parent.relative_to(SOURCE).parts)): path
    for path in sorted(SOURCE.rglob("__init__.py"))
    if "on_demand(__name__)" in path.read_text()
}


def test_which_packages_import_on_demand() -> None:
    rooms = ("runs", "training")
    assert sorted(LAZY) == ["attnlab", *(f"attnlab.{room}" for room in rooms)]


@pytest.mark.parametrize("package", LAZY)
def test_a_package_offers_what_it_lists(package: str) -> None:
    module, listed = importlib.import_module(package), listed_names(package, LAZY[package].read_text())
    assert sorted(listed) == sorted(module.__all__)
    for name, part in listed.items():
        assert getattr(module, name) is getattr(sys.modules[part], name)


@pytest.mark.parametrize("package", LAZY)
def test_no_name_is_that_of_a_part(package: str) -> None:
    parts = {path.stem for path in LAZY[package].parent.iterdir()}
    assert parts & set(importlib.import_module(package).__all__) == set()


def test_a_name_that_is_not_listed() -> None:
    with pytest.raises(AttributeError, match=r"^module 'attnlab.runs' has no attribute 'opne_run'$"):
        on_demand("attnlab.runs")("opne_run")
    with pytest.raises(ImportError, match=r"^cannot import name 'opne_run' from 'attnlab.runs'"):
        exec("from attnlab.runs import opne_run")
    assert not hasattr(runs, "opne_run")


def test_listed_names_are_those_of_parts() -> None:
    source = "from attnlab.lazy import x\nif X:\n    from attnlab.a.b import c, D\nimport attnlab.a.e\n"
    assert listed_names("attnlab.a", source) == {"c": "attnlab.a.b", "D": "attnlab.a.b"}


def test_every_module_that_is_imported_later_is_there() -> None:
    """A name in quotes is found by no checker of imports."""
    named: dict[str, str] = {}
    for each in pkgutil.walk_packages(attnlab.__path__, "attnlab."):
        values = vars(importlib.import_module(each.name)).values()
        named |= {value._name: each.name for value in values if isinstance(value, Later)}
    assert {"torch", "attnlab.sets"} <= named.keys()
    assert [name for name in named if importlib.util.find_spec(name) is None] == []
