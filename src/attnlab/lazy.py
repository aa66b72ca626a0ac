"""Packages that import a part of theirs when one of its names is asked for (PEP 562).

Such a package lists its names as any other does, but for mypy only, and ends with a ``__getattr__``:

    if TYPE_CHECKING:
        from attnlab.runs.folder import RunFolder, open_run
        from attnlab.runs.weights import load_model
    else:
        __getattr__ = on_demand(__name__)

So ``from attnlab.runs import open_run`` does not wait for torch, which only ``load_model`` needs. No name
may be that of a part as well: whichever came first would hide the other.
"""

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any


def on_demand(package: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of ``package``: imports the part that a listed name comes from."""

    @cache
    def listed() -> dict[str, str]:
        return listed_names(package, (files(package) / "__init__.py").read_text(encoding="utf-8"))

    def find(name: str) -> Any:
        if name not in listed():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(listed()[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


def listed_names(package: str, source: str) -> dict[str, str]:
    """The part of ``package`` that each name is imported from in ``source``."""
    for_types = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [n for block in for_types for n in ast.walk(block) if isinstance(n, ast.ImportFrom)]
    return {
        alias.name: node.module
        for node in imports
        if node.module is not None and node.module.startswith(f"{package}.")
        for alias in node.names
    }


class Later:
    """A module that is imported when something of it is first used.

    So a class that is mostly fields, such as a task, can compute with torch without making whoever only
    lists its fields wait for torch:

        if TYPE_CHECKING:
            import torch
        else:
            torch = Later("torch")

    ``Later.parts(package, *names)`` are several of a package.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @classmethod
    def parts(cls, package: str, *names: str) -> "Iterator[Later]":
        return (cls(f"{package}.{name}") for name in names)

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
