"""The software bill of materials is valid CycloneDX and names what is locked, and each licence."""

import json
from pathlib import Path
from typing import Any

import pytest

from test_locks import locked

ROOT = Path(__file__).parent.parent
pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib is not installed: scripts/setup")
KEPT = (ROOT / "docs/sbom.cdx.json").read_text(encoding="utf-8")


def problems(text: str) -> str | None:
    """Why a bill is no CycloneDX 1.6; None if it is."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return None if found is None else str(found.data)


def names(text: str, *scopes: str) -> dict[str, str]:
    parts: list[dict[str, Any]] = json.loads(text)["components"]
    return {each["name"]: each["version"] for each in parts if each["scope"] in scopes}


def test_the_bill_is_valid_and_names_what_is_locked() -> None:
    assert problems(KEPT) is None
    needed, everything = locked("attnlab.txt"), locked("everything.txt")
    for lock in (needed, everything):
        lock["torch"] = lock["torch"].partition("+")[0]
    assert names(KEPT, "required") == needed
    assert names(KEPT, "required", "optional", "excluded") == everything


def test_a_bill_that_is_wrong_is_noticed() -> None:
    bill = json.loads(KEPT)
    bill["components"][0]["scope"] = "perhaps"
    assert "perhaps" in str(problems(json.dumps(bill)))


def test_every_part_has_a_licence() -> None:
    bill = json.loads(KEPT)
    whole = bill["metadata"]["component"]
    for part in [whole, *whole["components"], *bill["components"]]:
        (stated,) = part["licenses"]
        words = stated.get("expression") or stated["license"].get("id") or stated["license"]["name"]
        assert words != "not stated", part["name"]
        assert len(words) < 200, part["name"]


def test_the_command_makes_the_bill_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the constraints are installed; elsewhere it makes a valid one of what is there."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import bill

    made = bill.as_json(bill.bill())
    assert problems(made) is None
    if names(made, "required", "optional", "excluded") == names(KEPT, "required", "optional", "excluded"):
        assert made == KEPT
