"""Commands say what they said when ``tests/golden`` was recorded, up to rounding (``tests/golden.py``)."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from attnlab.cli.main import COMMANDS
from golden import facts
from golden_cases import GROUPS, Case
from golden_compare import EXACT, EXACT_ONLY, ROUNDED, compare_folders, differences
from golden_perform import ENVIRONMENT, perform, prepare

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parent / "golden"
KEPT = {name: kept for name, cases in GROUPS.items() if (kept := [case for case in cases if case.kept])}
UNSTEADY = (
    *("digits-vit-project", "digits-vit-report", "grids-default-evaluate"),
    *("sorting-default-calibrate", "sorting-default-explain"),
)
"""What a hardly trained model says here depends on how a processor rounds; compared in recordings only."""
OLD: dict[str, Any] = {"loss": 0.5, "rows": [{"name": "a", "right": 3}, {"name": "b", "right": 5}]}


def recorded(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("group", KEPT)
def test_commands_say_the_same(group: str, tmp_path: Path) -> None:
    prepare(tmp_path)
    found: list[str] = []
    for case in KEPT[group]:
        if case.words.startswith("export"):
            continue  # graphs are traced with sizes that are no int, which tests check
        new = json.loads(json.dumps(perform(case, tmp_path)))
        if case.name in UNSTEADY:
            assert new["code"] == recorded(case.name)["code"]
            continue
        found += [f"{case.name}: {each}" for each in differences(recorded(case.name), new, ROUNDED)]
    assert found == []


def test_specs_and_results_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name, value in facts(tmp_path, pictures=False).items():
        assert list(differences(recorded(name), value, ROUNDED)) == []


def test_every_command_and_every_shipped_run_is_kept() -> None:
    cases = [case for kept in KEPT.values() for case in kept]
    pages = {"check", "explore", "handout"}  # have tests of their own, two of them in a browser
    assert {case.words.split()[0] for case in cases} >= set(COMMANDS) - pages
    answered = [case for case in cases if recorded(case.name)["code"] == 0]
    assert {case.words.split()[0] for case in answered} >= set(COMMANDS) - pages
    for run in ("zoo:adder", "zoo:sorter", "zoo:digit", "zoo:grid"):
        assert any(run in case.words for case in answered)


def test_what_is_kept_is_small_and_nothing_is_left_over() -> None:
    files = list(GOLDEN.glob("*.json"))
    names = {case.name for kept in KEPT.values() for case in kept}
    assert {path.stem for path in files} == names | {"spec-hashes", "study-results"}
    assert sum(path.stat().st_size for path in files) < 300_000


def test_names_are_unique() -> None:
    names = [case.name for cases in GROUPS.values() for case in cases]
    assert len(names) == len(set(names))


# The comparison itself


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("loss",), 0.51, "loss: 0.5 -> 0.51"),
        (("loss",), "0.5", 'loss: 0.5 -> "0.5"'),
        (("rows", 1, "right"), 6, "rows[1].right: 5 -> 6"),
        (("rows", 0, "name"), "c", 'rows[0].name: "a" -> "c"'),
        (("rows", 0), {"name": "a"}, "rows[0].right: missing"),
        (("rows",), [OLD["rows"][0]], "rows: 2 items -> 1"),
    ],
)
def test_a_planted_difference_is_found(path: tuple[Any, ...], value: Any, sentence: str) -> None:
    new = deepcopy(OLD)
    inner: Any = new
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    for tolerance in (ROUNDED, EXACT):
        assert list(differences(OLD, new, tolerance)) == [sentence]


def test_only_exact_comparison_sees_rounding_and_bytes() -> None:
    new = {**OLD, "loss": 0.50001}
    assert list(differences(OLD, new, ROUNDED)) == []
    assert list(differences(OLD, new, EXACT)) == ["loss: 0.5 -> 0.50001"]
    one, other = {EXACT_ONLY: "1f"}, {EXACT_ONLY: "2f"}
    assert list(differences(one, other, ROUNDED)) == []
    assert list(differences(one, other, EXACT)) == [f'{EXACT_ONLY}: "1f" -> "2f"']


def test_added_keys_clocks_machines_and_paths_are_ignored() -> None:
    old = {"seconds": 1.0, "environment": {"torch": "2"}, "files": ["a.svg"]}
    new = {"seconds": 2.0, "environment": {"torch": "3"}, "files": ["b.svg"], "more": 1}
    assert list(differences(old, new, EXACT)) == []


def test_checks_are_compared_by_their_kind_and_more_of_them_are_fine() -> None:
    one, other = {"kind": "a", "outcome": "clear"}, {"kind": "b", "outcome": "clear"}
    assert list(differences({"checks": [one]}, {"checks": [other, one]}, EXACT)) == []
    assert list(differences({"checks": [one, other]}, {"checks": [one]}, EXACT)) == ["checks.b: missing"]
    found = {"checks": [{**one, "outcome": "found"}]}
    assert list(differences({"checks": [one]}, found, EXACT)) == ['checks.a.outcome: "clear" -> "found"']


def test_a_case_that_is_not_recorded_is_a_difference(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/evaluate.json").write_text("{}")
    assert compare_folders(tmp_path / "old", tmp_path, EXACT) == ["evaluate: not recorded"]


def test_a_changed_answer_of_a_command_is_found(tmp_path: Path) -> None:
    prepare(tmp_path)
    new = perform(Case("adder-predict", "predict zoo:adder 37+86 7+8 --json"), tmp_path)
    found = list(differences(recorded("adder-predict"), new, ROUNDED))
    assert 'stdout[0].output: "122" -> "123"' in found
