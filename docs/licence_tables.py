"""Tables of the licences of what attnlab ships and brings along, from the software bill of materials."""

import json
from pathlib import Path
from typing import Any

from attnlab.results import Table

BILL = Path(__file__).parent / "sbom.cdx.json"


def shipped_table() -> str:
    """What is in the package besides code."""
    parts = json.loads(BILL.read_text(encoding="utf-8"))["metadata"]["component"]["components"]
    rows = [(each["name"], f"`{each['properties'][0]['value']}`", _licence(each)) for each in parts]
    return Table("", ("what", "where", "licence"), tuple(rows)).to_markdown()


def needed_table() -> str:
    return _packages("required")


def optional_table() -> str:
    return _packages("optional")


def tests_table() -> str:
    return _packages("excluded")


def _packages(scope: str) -> str:
    parts = json.loads(BILL.read_text(encoding="utf-8"))["components"]
    rows = [(each["name"], each["version"], _licence(each)) for each in parts if each["scope"] == scope]
    return Table("", ("package", "version", "licence"), tuple(rows)).to_markdown()


def _licence(part: dict[str, Any]) -> str:
    (stated,) = part["licenses"]
    return str(stated.get("expression") or stated["license"].get("id") or stated["license"]["name"])
